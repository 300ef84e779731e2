"""Networks in BIF files (the Interchange Format of 1998): strict, text only, and told by line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from robustq.documents.checking import SUM_TOLERANCE
from robustq.exceptions import FileError, InputError
from robustq.files import explain_os_error, write_atomically
from robustq.memory import require_memory
from robustq.tables import Categorical, Encoding

from .document import build_network
from .structure import CLASS, Structure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from robustq.arrays import Floats

    from .model import Network

__all__ = ["Read", "read_bif", "write_bif"]

# Comments and spaces are passed over; a word is whatever no sign or space ends.
TOKEN = re.compile(
    r"(?P<space>[ \t\r\f\v\ufeff]+|//[^\n]*)|(?P<line>\n)|(?P<comment>/\*.*?\*/)|(?P<open>/\*)"
    r'|"(?P<quoted>[^"\n]*)"|(?P<sign>[{}()\[\];,|])|(?P<word>[^\s{}()\[\];,|"]+)',
    re.DOTALL,
)
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# Files with few digits miss 1 by rounding; what misses it by more is a mistake.
ROUNDED = 1e-4
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]{1,9}")


class Token(NamedTuple):
    """A sign or a word, and the line it stands in."""

    text: str
    line: int
    is_sign: bool


@dataclass
class Block:
    """The probabilities of a variable, as the file has them."""

    parents: tuple[str, ...]
    line: int
    entries: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    default: list[float] | None = None


class Read(NamedTuple):
    """A network from a file."""

    model: Network
    encoding: Encoding
    classes: np.ndarray[Any, Any]


def read_bif(path: str | Path, target: str) -> Read:
    """Return the network of a file, with one variable as the class.

    Raises
    ------
    FileError
        If it cannot be read.
    InputError
        If it is no such network; the message tells the line.
    """
    text = _read_text(Path(path))
    try:
        parser = Parser(text)
        parser.read()
        return _build(parser.states, parser.blocks, target)
    except InputError as error:
        msg = f"{path}: {error}"
        raise InputError(msg) from error


def _read_text(path: Path) -> str:
    try:
        if not path.is_file():
            reason = "it is no regular file" if path.exists() else "it does not exist"
            msg = f"{path} cannot be read: {reason}"
            raise FileError(msg)
        size = path.stat().st_size
        # Texts and tokens of Python take a multiple of their bytes.
        require_memory(16 * size, f"the tables in {path}", "write a smaller network")
        raw = path.read_bytes()
    except OSError as error:
        if isinstance(error, FileError):
            raise
        msg = f"{path} cannot be read ({explain_os_error(error)})"
        raise FileError(msg) from error
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        msg = f"{path}: line {line}: not text in UTF-8; a BIF file is text"
        raise InputError(msg) from error


def _refuse(line: int, what: str) -> NoReturn:
    msg = f"line {line}: {what}"
    raise InputError(msg)


def _split(text: str) -> Iterator[Token]:
    """Yield the signs and words of a text; none at its end."""
    line, at = 1, 0
    while at < len(text):
        found = TOKEN.match(text, at)
        kind = None if found is None else found.lastgroup
        if found is None or kind == "open":
            _refuse(line, f"{'a comment' if kind else 'a quotation'} does not end")
        at = found.end()
        if kind == "line":
            line += 1
        elif kind == "comment":
            line += found.group().count("\n")
        elif kind != "space":
            yield Token(found.group(kind or 0), line, kind == "sign")
    while True:
        yield Token("", line, is_sign=True)


class Parser:
    """Reads statement after statement; nothing is nested, so nothing can be nested deeply."""

    def __init__(self, text: str) -> None:
        self._tokens = _split(text)
        self._now = next(self._tokens)
        self.states: dict[str, dict[str, int]] = {}
        self.blocks: dict[str, Block] = {}

    def read(self) -> None:
        """Read the whole text."""
        while self._now != ("", self._now.line, True):
            word = self._take()
            if word.text == "network":
                self._skip_block()
            elif word.text == "variable":
                self._read_variable()
            elif word.text == "probability":
                self._read_probability()
            else:
                _refuse(
                    word.line,
                    f"expected network, variable or probability, found {word.text[:40]!r}",
                )
        if not self.states:
            _refuse(self._now.line, "not a network in BIF: there is no variable")

    # Tokens

    def _take(self) -> Token:
        token, self._now = self._now, next(self._tokens)
        return token

    def _expect(self, sign: str) -> Token:
        token = self._take()
        if not token.is_sign or token.text != sign:
            _refuse(token.line, f"expected {sign!r}, found {token.text[:40] or 'the end'!r}")
        return token

    def _word(self, what: str) -> Token:
        token = self._take()
        if token.is_sign:
            _refuse(token.line, f"expected {what}, found {token.text or 'the end'!r}")
        return token

    def _at(self, sign: str) -> bool:
        return self._now.is_sign and self._now.text == sign

    def _skip_property(self) -> None:
        while not self._at(";"):
            if self._now.is_sign and self._now.text in ("", "{", "}"):
                _refuse(self._now.line, "a property does not end with ';'")
            self._take()
        self._take()

    def _skip_block(self) -> None:
        if not self._now.is_sign:
            self._take()
        self._expect("{")
        while not self._at("}"):
            word = self._word("property or '}'")
            if word.text != "property":
                _refuse(word.line, f"expected property, found {word.text[:40]!r}")
            self._skip_property()
        self._take()

    def _list(self, end: str, what: str) -> list[Token]:
        """Read words up to a sign, with commas between them or without."""
        found: list[Token] = []
        while not self._at(end):
            if found and self._at(","):
                self._take()
            found.append(self._word(what))
        self._take()
        return found

    # Statements

    def _read_variable(self) -> None:
        name = self._word("the name of a variable")
        if name.text in self.states:
            _refuse(name.line, f"variable {name.text!r} is there twice")
        self._expect("{")
        states: dict[str, int] | None = None
        while not self._at("}"):
            word = self._word("type, property or '}'")
            if word.text == "property":
                self._skip_property()
            elif word.text == "type" and states is None:
                states = self._read_type()
            else:
                _refuse(word.line, f"expected type or property, found {word.text[:40]!r}")
        end = self._take()
        if states is None:
            _refuse(end.line, f"variable {name.text!r} has no type")
        self.states[name.text] = states

    def _read_type(self) -> dict[str, int]:
        """Read the states of a variable: no more than the file names."""
        kind = self._word("discrete")
        if kind.text != "discrete":
            _refuse(kind.line, f"a variable must be discrete, this one is {kind.text[:40]!r}")
        self._expect("[")
        count = self._word("a number of states")
        self._expect("]")
        self._expect("{")
        found = [state.text for state in self._list("}", "the name of a state")]
        self._expect(";")
        if not re.fullmatch("[0-9]{1,18}", count.text) or int(count.text) != len(found):
            said = count.text[:20]
            _refuse(count.line, f"said to have {said} states, and {len(found)} are named")
        states = {state: code for code, state in enumerate(found)}
        if len(states) < len(found) or not found:
            twice = next((s for code, s in enumerate(found) if states[s] != code), None)
            _refuse(count.line, f"state {twice!r} is there twice" if found else "there is no state")
        return states

    def _read_probability(self) -> None:
        line = self._expect("(").line
        name = self._known(self._word("the name of a variable"))
        if name in self.blocks:
            _refuse(line, f"the probabilities of {name!r} are there twice")
        parents: list[str] = []
        if self._at("|"):
            self._take()
            parents = [self._known(token) for token in self._list(")", "the name of a parent")]
            if not parents:
                _refuse(line, "expected a parent after '|'")
        else:
            self._expect(")")
        if _has_twins([name, *parents]):
            _refuse(line, f"a parent of {name!r} is there twice, or is {name!r} itself")
        block = Block(tuple(parents), line)
        self._expect("{")
        while not self._at("}"):
            self._read_entry(name, block)
        self._take()
        self.blocks[name] = block

    def _known(self, token: Token) -> str:
        if token.text not in self.states:
            _refuse(token.line, f"there is no variable {token.text[:40]!r} (above)")
        return token.text

    def _read_entry(self, name: str, block: Block) -> None:
        token = self._take()
        if token.is_sign and token.text == "(":
            given = self._list(")", "the state of a parent")
            key = tuple(state.text for state in given)
            self._check_key(key, block, token.line)
            block.entries[key] = self._read_numbers(name, token.line)
        elif token.text == "table" and not block.parents:
            if block.entries:
                _refuse(token.line, f"the table of {name!r} is there twice")
            block.entries[()] = self._read_numbers(name, token.line)
        elif token.text == "table":
            _refuse(
                token.line,
                f"programs differ in the order of a table of {name!r} with parents: write a line "
                "for each configuration, as in (a, b) 0.1, 0.9;",
            )
        elif token.text == "default" and block.default is None and block.parents:
            block.default = self._read_numbers(name, token.line)
        elif token.text == "property":
            self._skip_property()
        else:
            found = token.text[:40] or "the end"
            _refuse(token.line, f"expected probabilities of {name!r}, found {found!r}")

    def _check_key(self, key: tuple[str, ...], block: Block, line: int) -> None:
        if len(key) != len(block.parents) or not key:
            _refuse(line, f"{len(key)} states for {len(block.parents)} parents")
        for parent, state in zip(block.parents, key, strict=True):
            if state not in self.states[parent]:
                _refuse(line, f"{parent!r} has no state {state[:40]!r}")
        if key in block.entries:
            _refuse(line, f"the configuration ({', '.join(key)}) is there twice")

    def _read_numbers(self, name: str, line: int) -> list[float]:
        tokens = self._list(";", "a probability")
        wrong = next((token for token in tokens if not NUMBER.fullmatch(token.text)), None)
        if wrong is not None:
            _refuse(wrong.line, f"{wrong.text[:40]!r} is no probability")
        numbers = [float(token.text) for token in tokens]
        outcomes = len(self.states[name])
        if len(numbers) != outcomes:
            _refuse(line, f"{len(numbers)} probabilities for the {outcomes} states of {name!r}")
        if not all(isfinite(number) and 0.0 <= number <= 1.0 for number in numbers):
            _refuse(line, f"the probabilities of {name!r} must be from 0 to 1")
        total = sum(numbers)
        if abs(total - 1.0) > ROUNDED:
            _refuse(line, f"the probabilities of {name!r} sum to {total:.6g}, not to 1")
        # What was written with few digits is made to sum to 1; what was not stays as it is.
        if abs(total - 1.0) > 0.1 * SUM_TOLERANCE:
            numbers = [number / total for number in numbers]
        return numbers


def _has_twins(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


# From statements to a network


def _build(states: dict[str, dict[str, int]], blocks: dict[str, Block], target: str) -> Read:
    if target not in states:
        names = ", ".join(map(repr, list(states)[:12])) + (", …" if len(states) > 12 else "")
        msg = f"there is no variable {target!r} to predict; there are {names}"
        raise InputError(msg)
    absent = next((name for name in states if name not in blocks), None)
    if absent is not None:
        msg = f"variable {absent!r} has no probabilities"
        raise InputError(msg)
    features = [name for name in states if name != target]
    position = {name: index for index, name in enumerate(features)} | {target: CLASS}
    _check_structure(blocks, position, states)
    # Labels are sorted everywhere; the file has the class's own probabilities in its own order.
    order = sorted(states[target])
    own = [states[target][label] for label in order]
    states = {**states, target: {label: code for code, label in enumerate(order)}}
    given: dict[int, dict[str, Any]] = {
        position[name]: {
            "parents": [position[parent] for parent in block.parents],
            "probs": _fill(name, block, states),
            "where": f"line {block.line}: {name!r}",
        }
        for name, block in blocks.items()
    }
    given[CLASS]["probs"] = given[CLASS]["probs"][:, own]
    encoding = Encoding(tuple(Categorical(name, tuple(states[name])) for name in features), True)
    return Read(build_network(given, encoding, len(order)), encoding, np.array(order))


def _check_structure(
    blocks: dict[str, Block], position: dict[str, int], states: dict[str, dict[str, int]]
) -> None:
    """Refuse cycles, gaps in tables, and tables too large, before any is made."""
    features = [name for name in position if position[name] != CLASS]
    target = next(name for name in position if position[name] == CLASS)

    def parents(name: str) -> tuple[int, ...]:
        return tuple(position[p] for p in blocks[name].parents if position[p] != CLASS)

    structure = Structure(
        tuple(len(states[name]) for name in features),
        len(states[target]),
        tuple(parents(name) for name in features),
        tuple(target in blocks[name].parents for name in features),
        parents(target),
    )
    try:
        structure.order  # noqa: B018 (raises where there is a cycle)
    except InputError as error:
        cycle: Sequence[int] = error.__cause__.args[1] if error.__cause__ else ()
        called = [*features, target]
        names = [called[v] for v in reversed(cycle)]
        _refuse(blocks[names[0]].line, f"the parents form a cycle: {' → '.join(names)}")
    for name, block in blocks.items():
        wanted = prod(len(states[parent]) for parent in block.parents)
        if block.default is None and len(block.entries) < wanted:
            missing = wanted - len(block.entries)
            _refuse(
                block.line,
                f"{missing:,} of {wanted:,} configurations of the parents of {name!r} are missing",
            )
    structure.require_room()


def _fill(name: str, block: Block, states: dict[str, dict[str, int]]) -> Floats:
    """Return the probabilities, a row for each configuration, the last parent fastest."""
    sizes = [len(states[parent]) for parent in block.parents]
    table = np.empty((prod(sizes), len(states[name])))
    if block.default is not None:
        table[:] = block.default
    codes = [states[parent] for parent in block.parents]
    for key, numbers in block.entries.items():
        at = 0
        for size, code, state in zip(sizes, codes, key, strict=True):
            at = at * size + code[state]
        table[at] = numbers
    return table


# Writing


def write_bif(model: Network, classifier: Any, path: str | Path) -> None:
    """Write a network; names that BIF has no way to write are spelled with letters, digits, _."""
    structure = model.structure
    names = spell([*classifier.encoding_.names, classifier.target_name_])
    values = [spell([str(c) for c in column.categories]) for column in classifier.encoding_.columns]
    values.append(spell([str(label) for label in classifier.classes_.tolist()]))
    lines = ["network robustq {", "}"]
    for name, states in zip(names, values, strict=True):
        if not states:
            msg = f"column {name!r} has no values, and BIF has no variables without states"
            raise InputError(msg)
        listed = ", ".join(states)
        lines += [f"variable {name} {{", f"   type discrete [ {len(states)} ] {{ {listed} }};", "}"]
    lines += _write_table(names, values, CLASS, structure.class_parents, model.class_probs)
    for i in range(len(structure.sizes)):
        table = np.moveaxis(model.table(i), -1, 0).reshape(-1, structure.sizes[i])
        lines += _write_table(names, values, i, structure.parents_of(i), table)
    write_atomically(Path(path), "\n".join([*lines, ""]))


def _write_table(
    names: list[str],
    values: list[list[str]],
    variable: int,
    parents: tuple[int, ...],
    table: Floats,
) -> Iterator[str]:
    given = f" | {', '.join(names[p] for p in parents)}" if parents else ""
    yield f"probability ( {names[variable]}{given} ) {{"
    # Counted as an odometer: the last parent is the fastest.
    places = [0] * len(parents)
    for row in table.tolist():
        states = ", ".join(values[p][k] for p, k in zip(parents, places, strict=True))
        numbers = ", ".join(map(repr, row))
        yield f"   ({states}) {numbers};" if parents else f"   table {numbers};"
        for at in range(len(parents) - 1, -1, -1):
            places[at] = (places[at] + 1) % len(values[parents[at]])
            if places[at]:
                break
    yield "}"


def spell(names: Sequence[str]) -> list[str]:
    """Return names that BIF can hold, all different.

    Examples
    --------
    >>> spell(["age", "<=50K", ">50K", "12"])
    ['age', '__50K', '_50K', '12']
    """
    made: list[str] = []
    taken = {name for name in names if PLAIN.fullmatch(name)}
    for name in names:
        plain = name
        if not PLAIN.fullmatch(name):
            plain = re.sub("[^A-Za-z0-9_]", "_", name) or "_"
            plain = plain if PLAIN.fullmatch(plain) else f"_{plain}"
            stem, count = plain, 2
            while plain in taken:
                plain, count = f"{stem}_{count}", count + 1
            taken.add(plain)
        made.append(plain)
    return made
