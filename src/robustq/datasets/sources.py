"""The one table of data sets: where each comes from, and how it becomes a discrete task.

They are the eleven of the paper, from the UCI Machine Learning Repository, CC BY 4.0.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

from robustq.exceptions import UnknownNameError

from .targets import AnyPositive, AtLeast, Column, Target

__all__ = ["SOURCES", "Source", "get", "names"]

ARCHIVE = "https://archive.ics.uci.edu/static/public"


@dataclass(frozen=True)
class Source:
    """One data set as UCI has it, and what becomes of it.

    Attributes
    ----------
    id : str
        Its number in the paper.
    name : str
    title : str
    number, archive : int and str
        UCI's number of it, and the archive it is downloaded as.
    citation : str
    files : dict of str to int
        The raw files, with the rows that each holds.
    columns : tuple of str
        What the columns of the raw files are, in their order.
    features : tuple of str
        Those that are used.
    target : Target
    rows, classes : int
        What is left in the end.
    delimiter : str, optional
        White space by default.
    header : bool
        Whether the first line of a file names the columns.
    split : bool
        Whether the first file is for training and the second for testing.
    meanings : dict
        What the labels stand for, where they do not say it themselves.
    words : dict of str to dict of str to str
        What the codes of a feature stand for, where they are codes.
    note : str
        What was decided where the paper is silent.
    paper_rows : int, optional
        The rows in the paper's own table, if it has another number.
    """

    id: str
    name: str
    title: str
    number: int
    archive: str
    citation: str
    files: dict[str, int]
    columns: tuple[str, ...]
    features: tuple[str, ...]
    target: Target
    rows: int
    classes: int
    delimiter: str | None = None
    header: bool = False
    split: bool = False
    meanings: dict[object, str] = field(default_factory=dict)
    words: dict[str, dict[str, str]] = field(default_factory=dict)
    note: str = ""
    paper_rows: int | None = None

    @property
    def url(self) -> str:
        """The address of the archive."""
        return f"{ARCHIVE}/{self.number}/{self.archive}"


def _without(columns: tuple[str, ...], *dropped: str) -> tuple[str, ...]:
    return tuple(name for name in columns if name not in dropped)


ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)
AUSTRALIAN = tuple(f"A{i}" for i in range(1, 16))
BANK = (
    *("age", "job", "marital", "education", "default", "balance", "housing", "loan", "contact"),
    *("day", "month", "duration", "campaign", "pdays", "previous", "poutcome", "y"),
)
BREAST = (
    *("id", "clump_thickness", "cell_size", "cell_shape", "adhesion", "epithelial_size"),
    *("bare_nuclei", "chromatin", "nucleoli", "mitoses", "class"),
)
GERMAN = (
    *("checking", "duration", "credit_history", "purpose", "amount", "savings", "employment"),
    *("rate", "personal_status", "other_debtors", "residence", "property", "age", "other_plans"),
    *("housing", "credits", "job", "dependents", "telephone", "foreign_worker", "class"),
)
# Never “none” alone: in a CSV that is a gap.
GERMAN_WORDS = {
    "checking": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more, or salary for a year",
        "A14": "no account",
    },
    "credit_history": {
        "A30": "no credits, or all paid back",
        "A31": "all at this bank paid back",
        "A32": "paid back till now",
        "A33": "delays in the past",
        "A34": "critical, or credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture",
        "A43": "radio or television",
        "A44": "appliances",
        "A45": "repairs",
        "A46": "education",
        "A47": "vacation",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employment": {
        "A71": "unemployed",
        "A72": "under 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "personal_status": {
        "A91": "man, divorced or separated",
        "A92": "woman, divorced, separated or married",
        "A93": "man, single",
        "A94": "man, married or widowed",
        "A95": "woman, single",
    },
    "other_debtors": {"A101": "no others", "A102": "co-applicant", "A103": "guarantor"},
    "property": {
        "A121": "real estate",
        "A122": "savings plan or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "other_plans": {"A141": "at a bank", "A142": "at stores", "A143": "no others"},
    "housing": {"A151": "rented", "A152": "owned", "A153": "free"},
    "job": {
        "A171": "unemployed, or unskilled and not resident",
        "A172": "unskilled, resident",
        "A173": "skilled",
        "A174": "management, self-employed, highly qualified",
    },
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
}
NPHA = (
    *("Number of Doctors Visited", "Age", "Physical Health", "Mental Health", "Dental Health"),
    *("Employment", "Stress Keeps Patient from Sleeping"),
    *("Medication Keeps Patient from Sleeping", "Pain Keeps Patient from Sleeping"),
    *("Bathroom Needs Keeps Patient from Sleeping", "Unknown Keeps Patient from Sleeping"),
    *("Trouble Sleeping", "Prescription Sleep Medication", "Race", "Gender"),
)
FLARE = (
    *("zurich_class", "spot_size", "spot_distribution", "activity", "evolution"),
    *("previous_activity", "historically_complex", "became_complex", "area", "largest_spot_area"),
    *("C", "M", "X"),
)
SPECT = ("diagnosis", *(f"F{i}" for i in range(1, 23)))
STUDENT = (
    *("school", "sex", "age", "address", "famsize", "Pstatus", "Medu", "Fedu", "Mjob", "Fjob"),
    *("reason", "guardian", "traveltime", "studytime", "failures", "schoolsup", "famsup", "paid"),
    *("activities", "nursery", "higher", "internet", "romantic", "famrel", "freetime", "goout"),
    *("Dalc", "Walc", "health", "absences", "G1", "G2", "G3"),
)
PASSED = AtLeast("G3", 10, "pass", "fail")
FLARED = AnyPositive(("C", "M", "X"), "yes", "no")

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            id="D1",
            name="adult",
            title="Adult",
            number=2,
            archive="adult.zip",
            citation="Becker, B. & Kohavi, R. (1996). Adult. doi:10.24432/C5XW20",
            files={"adult.data": 32561, "adult.test": 16281},
            columns=ADULT,
            features=(
                *("workclass", "education", "marital-status", "occupation", "relationship"),
                *("race", "sex"),
            ),
            target=Column("income"),
            rows=3000,
            classes=2,
            delimiter=",",
            note="3000 random rows of those without “?”; the paper uses seven of the eight "
            "categorical columns without naming them: native-country is left out here",
        ),
        Source(
            id="D2",
            name="australian",
            title="Australian Credit Approval",
            number=143,
            archive="statlog+australian+credit+approval.zip",
            citation="Quinlan, R. Statlog (Australian Credit Approval). doi:10.24432/C59012",
            files={"australian.dat": 690},
            columns=AUSTRALIAN,
            features=("A1", "A4", "A5", "A6", "A8", "A9", "A11", "A12"),
            target=Column("A15"),
            rows=690,
            classes=2,
            meanings={0: "refused", 1: "approved"},
        ),
        Source(
            id="D3",
            name="bank",
            title="Bank Marketing",
            number=222,
            archive="bank+marketing.zip",
            citation="Moro, S., Rita, P. & Cortez, P. (2014). Bank Marketing. doi:10.24432/C5K306",
            files={"bank-full.csv": 45211},
            columns=BANK,
            features=(
                *("job", "marital", "education", "default", "housing", "loan", "contact"),
                *("month", "poutcome"),
            ),
            target=Column("y"),
            rows=3000,
            classes=2,
            delimiter=";",
            header=True,
            note="3000 random rows; “unknown” is a value",
        ),
        Source(
            id="D4",
            name="breast-cancer-wisconsin",
            title="Breast Cancer Wisconsin",
            number=15,
            archive="breast+cancer+wisconsin+original.zip",
            citation="Wolberg, W. (1990). Breast Cancer Wisconsin (Original). doi:10.24432/C5HP4Z",
            files={"breast-cancer-wisconsin.data": 699},
            columns=BREAST,
            features=_without(BREAST, "id", "class"),
            target=Column("class"),
            rows=683,
            classes=2,
            delimiter=",",
            meanings={2: "benign", 4: "malignant"},
            note="the nine scores from 1 to 10 are categories; 16 rows with “?” are dropped",
        ),
        Source(
            id="D5",
            name="german",
            title="German Credit Data",
            number=144,
            archive="statlog+german+credit+data.zip",
            citation="Hofmann, H. (1994). Statlog (German Credit Data). doi:10.24432/C5NC77",
            files={"german.data": 1000},
            columns=GERMAN,
            features=(
                *("checking", "credit_history", "purpose", "savings", "employment"),
                *("personal_status", "other_debtors", "property", "other_plans", "housing"),
                *("job", "telephone", "foreign_worker"),
            ),
            target=Column("class"),
            rows=1000,
            classes=2,
            meanings={1: "good", 2: "bad"},
            words=GERMAN_WORDS,
        ),
        Source(
            id="D6",
            name="npha",
            title="National Poll on Healthy Aging",
            number=936,
            archive="national+poll+on+healthy+aging+(npha).zip",
            citation="National Poll on Healthy Aging (2017), University of Michigan. "
            "doi:10.3886/ICPSR37305.v1",
            files={"NPHA-doctor-visits.csv": 714},
            columns=NPHA,
            features=_without(NPHA, "Number of Doctors Visited", "Age"),
            target=Column("Number of Doctors Visited"),
            rows=714,
            classes=3,
            delimiter=",",
            header=True,
            meanings={1: "0 or 1", 2: "2 or 3", 3: "4 or more"},
            note="Age is constant and dropped; negative codes (−1 refused, −2 not asked) are "
            "values",
        ),
        Source(
            id="D7",
            name="solar-flare-big",
            title="Solar Flare (big)",
            number=89,
            archive="solar+flare.zip",
            citation="Solar Flare (1989). doi:10.24432/C5530G",
            files={"flare.data2": 1066},
            columns=FLARE,
            features=_without(FLARE, "C", "M", "X"),
            target=FLARED,
            rows=1066,
            classes=2,
            note="the class is whether there was any flare (C + M + X > 0)",
        ),
        Source(
            id="D8",
            name="solar-flare-small",
            title="Solar Flare (small)",
            number=89,
            archive="solar+flare.zip",
            citation="Solar Flare (1989). doi:10.24432/C5530G",
            files={"flare.data1": 323},
            columns=FLARE,
            features=_without(FLARE, "C", "M", "X"),
            target=FLARED,
            rows=323,
            classes=2,
            note="the class is whether there was any flare (C + M + X > 0)",
        ),
        Source(
            id="D9",
            name="spect",
            title="SPECT Heart",
            number=95,
            archive="spect+heart.zip",
            citation="Cios, K., Kurgan, L. & Goodenday, L. (2001). SPECT Heart. "
            "doi:10.24432/C5P304",
            files={"SPECT.train": 80, "SPECT.test": 187},
            columns=SPECT,
            features=_without(SPECT, "diagnosis"),
            target=Column("diagnosis"),
            rows=267,
            classes=2,
            delimiter=",",
            split=True,
            note="has a split of its own: 80 rows to learn from, 187 to test on",
            paper_rows=428,
        ),
        Source(
            id="D10",
            name="student-math",
            title="Student Performance Math",
            number=320,
            archive="student+performance.zip",
            citation="Cortez, P. (2008). Student Performance. doi:10.24432/C5TG7T",
            files={"student-mat.csv": 395},
            columns=STUDENT,
            features=_without(STUDENT, "absences", "G1", "G2", "G3"),
            target=PASSED,
            rows=395,
            classes=2,
            delimiter=";",
            header=True,
            note="the class is whether the final grade is at least 10; grades and absences are "
            "dropped",
            paper_rows=649,
        ),
        Source(
            id="D11",
            name="student-port",
            title="Student Performance Port",
            number=320,
            archive="student+performance.zip",
            citation="Cortez, P. (2008). Student Performance. doi:10.24432/C5TG7T",
            files={"student-por.csv": 649},
            columns=STUDENT,
            features=_without(STUDENT, "absences", "G1", "G2", "G3"),
            target=PASSED,
            rows=649,
            classes=2,
            delimiter=";",
            header=True,
            note="the class is whether the final grade is at least 10; grades and absences are "
            "dropped",
        ),
    )
}


def names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return tuple(SOURCES)


def get(name: str) -> Source:
    """Return the data set of a name, or of its number in the paper (“D5”)."""
    for source in SOURCES.values():
        if isinstance(name, str) and name.lower() in {source.name, source.id.lower()}:
            return source
    near = difflib.get_close_matches(str(name).lower(), SOURCES, n=1, cutoff=0.4)
    hint = f" did you mean {near[0]!r}?" if near else ""
    msg = f"unknown data set {name!r};{hint} known are {', '.join(SOURCES)}"
    raise UnknownNameError(msg)
