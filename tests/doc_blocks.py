"""The code blocks of a Markdown page as steps, and a folder in which they run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.cli.commands import homing
from tests.service.server_process import serve

ROOT = Path(__file__).parents[1]
ADDRESS = re.compile(r"http://(?:127\.0\.0\.1|host):8321")
TIMEOUT = 300  # seconds


@dataclass(frozen=True)
class Step:
    """One command, one Python script, or the text that is shown below a command."""

    page: str
    line: int
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.code}"


def read_steps(page: Path) -> list[Step]:
    """The commands, scripts and shown texts of a page in order. Python blocks in a row are one script."""
    steps: list[Step] = []
    for token in MarkdownIt().parse(page.read_text()):
        if token.type != "fence":
            continue
        assert token.map is not None
        block = Step(str(page.relative_to(ROOT)), token.map[0] + 2, token.info, token.content)
        if block.language == "sh":
            steps += commands(block)
        elif block.language == "python" and steps and steps[-1].language == "python":
            steps[-1] = replace(steps[-1], code=steps[-1].code + block.code)
        elif block.language in ("python", "json", "text"):
            steps.append(block)
    return steps


def commands(block: Step) -> Iterator[Step]:
    """The commands of a block: one per line, except where a line or a quotation continues."""
    code, first = "", block.line
    for number, line in enumerate(block.code.splitlines(), block.line):
        first, code = first if code else number, f"{code}{line}\n"
        try:
            words = shlex.split(code.removesuffix("\\\n"), comments=True)
        except ValueError:  # the quotation continues
            continue
        if not line.endswith("\\"):
            if words:
                yield replace(block, line=first, code=code.strip())
            code = ""
    assert not code, f"{block.page}: a command without its end: {code}"


@dataclass
class Runner:
    """Runs steps in a folder. `small` holds more options for commands, by how they begin."""

    folder: Path
    small: Mapping[str, str]
    stack: ExitStack
    environment: dict[str, str] = field(default_factory=dict)
    address: str | None = None
    output: str = ""
    printed: str = ""

    def run(self, step: Step) -> None:
        """Run a command or a script; compare shown text that has JSON with the output before it."""
        if step.language == "sh":
            self.run_command(step.code)
        elif step.language == "python":
            self.output = self._process([sys.executable, "-c", self._addressed(step.code)])
        self.printed += self.output
        if step.language in ("json", "text"):
            if step.code.startswith("{") and self.output.startswith("{"):
                expected, printed = json_names(step.code), json_names(self.output)
                missing = set() if " or null" in step.code else expected - printed
                assert not missing and printed <= expected, (
                    f"{step}\nnot printed: {missing}; not shown: {printed - expected}"
                )
            self.output = ""

    def run_command(self, command: str) -> None:
        """Run a command: `homing` in a fork, a service or a node of Ray in the background, another one in a shell."""
        command = command.replace("\\\n", " ")
        small = next((more for start, more in self.small.items() if command.startswith(start)), "")
        words = [*shlex.split(command, comments=True), *shlex.split(small)]
        if words[:2] == ["homing", "serve"] and "--new-key" not in words:
            options = [str(self.folder / word) if (self.folder / word).exists() else word for word in words[3:]]
            self.address = self.stack.enter_context(serve(self.folder / words[2], *options)).address
            self.environment["AT"] = self.address
        elif words[0] == "homing":
            self.output = self._homing([self._existing(word) for word in words[1:]])
            if "--new-key" in words:
                self.environment["KEY"] = self.output.strip()
        elif words[0] == "curl":
            command = self._addressed(command).replace("curl ", "curl -sSf ", 1)
            self.output = self._process(["bash", "-euc", re.sub(r"(?<=/v1/jobs/)\w+…", self._job, command)])
        else:
            self.output = self._process(["bash", "-euc", command])

    def _homing(self, arguments: list[str]) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name, value in self.environment.items():
                patch.setenv(name, value)
            printed = homing(*arguments).stdout
        for option, name in pairwise(arguments):
            if option in ("--out", "--html", "--report") and "://" not in name:
                assert (self.folder / name).exists(), f"{option} {name}"
        return printed

    def _process(self, command: list[str]) -> str:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | {"PATH": path} | self.environment
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _addressed(self, code: str) -> str:
        if not ADDRESS.search(code):
            return code
        assert self.address is not None, "no service runs"
        return ADDRESS.sub(self.address, code)

    def _existing(self, word: str) -> str:
        """The file that is meant by a name with …, such as descriptors-….npy."""
        if "…" not in word:
            return word
        return str(min(self.folder.glob(word.replace("…", "*"))))

    def _job(self, _: re.Match[str]) -> str:
        """The id of the job that an answer named last."""
        return re.findall(r"/v1/jobs/([\w-]+)", self.printed)[-1]


def json_names(text: str) -> set[str]:
    """The names in a JSON document, or in the sketch of one, such as {"photos": [{"id", "state"}], "next"}."""
    try:
        return {*names_of(json.loads(text))}
    except ValueError:
        return set(re.findall(r'(?<!: )"(\w+)"', text))


def names_of(value: Any) -> Iterator[str]:
    """The names of an object and of all in it."""
    if isinstance(value, dict):
        yield from value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from names_of(each)
