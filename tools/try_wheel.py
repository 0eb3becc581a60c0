"""Install a wheel into a new environment outside the checkout and use it: init, activate, search, serve --help.

python tools/try_wheel.py dist/homing-*.whl

PyTorch and the other dependencies (6 GB) come from the environment that runs this script; homing from the wheel.
The environment must have every requirement of the wheel.
"""

from __future__ import annotations

import argparse
import email
import json
import subprocess
import sysconfig
import tempfile
import venv
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement


def main() -> None:
    """Install and use the wheel; fail at the first error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.resolve()
    check_requirements(wheel)
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        install(wheel, environment)
        use(environment / "bin" / "homing", Path(folder))
    print(f"{wheel.name}: installed and used")


def check_requirements(wheel: Path) -> None:
    """Fail unless this environment has every requirement of the wheel, extras left out."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        requirements = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found = version(requirement.name)
            assert requirement.specifier.contains(found, prereleases=True), f"{requirement}: found {found}"


def install(wheel: Path, environment: Path) -> None:
    """Create an environment with the wheel that also imports the packages of this environment."""
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", wheel, cwd=environment)
    packages = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=environment).strip()
    )
    # The added folder is searched after the environment's own packages. Its .pth files, such as that of an editable
    # homing, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = run(python, "-c", "import homing; print(homing.__file__)", cwd=environment).strip()
    assert Path(where).is_relative_to(environment), f"homing was imported from {where}, not from the wheel"


def use(homing: Path, folder: Path) -> None:
    """Create a collection, activate a photo, search for it and print the help of the service."""
    photos = folder / "photos"
    photos.mkdir()
    (photos / "flower.jpg").write_bytes(files("sklearn.datasets.images").joinpath("flower.jpg").read_bytes())
    run(homing, "init", "trial.homing", cwd=folder)
    (outcome,) = json.loads(
        run(homing, "activate", "trial.homing", "photos", "--out", "released", "--json", cwd=folder)
    )
    assert outcome["state"] == "activated", outcome
    (answer,) = json.loads(run(homing, "search", "trial.homing", "released/flower.jpg", "--json", cwd=folder))
    assert answer["matches"][0]["photo"].endswith("flower.jpg"), answer
    assert "--port" in run(homing, "serve", "--help", cwd=folder)


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside of any checkout and return its output."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main()
