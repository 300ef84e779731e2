"""What the data sets hold, so that nothing else is taken for one of them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from .parsing import parse

if TYPE_CHECKING:
    from .sources import Source

__all__ = ["CHECKSUMS", "holds_what_it_should"]

# Of the records that are used, sorted: copies differ in the order of rows, in line ends and in
# the remarks around them.
CHECKSUMS = {
    "adult": "c456952c2c307a7fdf58ee0fc057d5ddd01229b71dd1681dc98e691c703f3a0f",
    "australian": "1353a4f1a146a98bbf1b77591c04cce2f4ac1cf2e1f1dd7f6d2db9b8a5f344f9",
    "bank": "b649e286010cbcd945dd069118fd724e78bb287fd067e5afdfc9107e4a60feb7",
    "breast-cancer-wisconsin": "4936ff5c098c18f7f108a8b0bbdae8e4a6d1b38813383a06d99e754aef0e5615",
    "german": "07a0dac84377de979f9a7e42325cbdced3199a66e1feed097238eb7e990bfc0a",
    "npha": "83ac4dc0a23eed7603194a3f6bd293b17e8da331ec96f57976af27964306993b",
    "solar-flare-big": "25d66b774c93f6f5c0de452f6c6aceb362180b081c44a9afa4d3935011d4d9b9",
    "solar-flare-small": "5977bc7e2e7cdb9f043e359e1a5091d9557961a692ac8c08b06ec1bc8f215ba3",
    "spect": "cc58bd82add64160d078e8871f30a42662c4e925d5b502d10445b15722bdd341",
    "student-math": "2ddbe11c80c6aad48b8331cc39073126b3457ff9a1888afc21b17f806f0a868b",
    "student-port": "e76963160a0e27a273c5cfa3b7665f385a879b69ff9ec7dfbfcd8a31526ff05e",
}


def holds_what_it_should(source: Source, files: dict[str, bytes]) -> bool:
    """Tell whether raw files hold the records of a data set, and nothing else."""
    records = sorted(record for file in source.files for record in parse(source, file, files[file]))
    told = repr([tuple(record) for record in records])
    return hashlib.sha256(told.encode()).hexdigest() == CHECKSUMS[source.name]
