"""Random tests are the same everywhere; the slow ones are marked, here and nowhere else."""

from fnmatch import fnmatchcase

import hypothesis

# Random tests are the same on every machine and every day.
hypothesis.settings.register_profile("seeded", derandomize=True, deadline=None, max_examples=200)
hypothesis.settings.load_profile("seeded")

# What takes half a second or more, by folder, module or name, wherever it moves. `make test-quick`
# leaves it out, and shows what else has become slow.
SLOW_FOLDERS = {"cli"}  # processes that import everything
SLOW_MODULES = {"test_convex_solver", "test_kernels", "test_laws", "test_reproduction"}
SLOW_NAMES = ("test_*_is_exact",)

# What a slow test reaches is reached by quick ones too, and tracing the exact arithmetic that it
# compares with would take as long again; but only slow ones reach these.
TRACED = {"cli", "experiments", "report"}


def pytest_collection_modifyitems(items):
    for item in items:
        folder, module = item.path.parent.name, item.path.stem
        name = getattr(item, "originalname", item.name)
        if (
            folder in SLOW_FOLDERS
            or module in SLOW_MODULES
            or any(fnmatchcase(name, pattern) for pattern in SLOW_NAMES)
        ):
            item.add_marker("slow")
            if folder not in TRACED:
                item.add_marker("no_cover")
