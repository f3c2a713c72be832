"""Whose a fix is: the last rule that matches decides, and complaints name line and rule."""

from datetime import date
from pathlib import Path

import pytest

from perfdiag.classifiers.diagnoses import all_diagnoses
from perfdiag.classifiers.owners import Owners, Subject, default_owners, read_owners
from perfdiag.classifiers.safe_names import folder_names
from perfdiag.trace_schemas.errors import UsageError
from perfdiag.trace_schemas.report import LAYERS

TODAY = date(2026, 6, 30)
TEAMS = "teams: {a: {name: Team A, contacts: '#a'}, b:}\n"


def owners(tmp_path: Path, rules: str, teams: str = TEAMS) -> Owners:
    """The owners of a file with these rules."""
    file = tmp_path / "owners.yml"
    file.write_text(f"{teams}rules:\n{rules}", encoding="utf-8")
    return read_owners(file)


def team(known: Owners, subject: Subject) -> str:
    """Who is told of a subject."""
    return known.owner_of(subject, TODAY).team.id


GEMM = Subject("kernels", "misaligned_gemm", "gemm", "ampere_sgemm", "compute-bound")


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_has_a_default_team(layer: str) -> None:
    """No fix of the default is nobody's."""
    found = default_owners().owner_of(Subject(layer, "late_rank"), TODAY)
    assert found.reason.startswith("rule ")


def test_every_diagnosis_has_a_default_team() -> None:
    """Whatever fires finds an owner."""
    known = default_owners()
    subjects = [Subject(one.layer, one.id) for one, _ in all_diagnoses()]
    assert all(known.owner_of(one, TODAY).team.id in known.teams for one in subjects)


def test_the_last_rule_that_matches_decides(tmp_path: Path) -> None:
    """As in a CODEOWNERS file."""
    rules = "- {layer: kernels, team: a}\n- {family: gemm, team: b}\n"
    assert team(owners(tmp_path, rules), GEMM) == "b"
    assert team(owners(tmp_path, "\n".join(reversed(rules.splitlines()))), GEMM) == "a"


def test_all_keys_of_a_rule_must_match(tmp_path: Path) -> None:
    """Keys narrow a rule down, the patterns of one key widen it."""
    rules = "- {team: a}\n- {layer: kernels, family: [norm, 'soft*'], team: b}\n"
    assert team(owners(tmp_path, rules), GEMM) == "a"
    softmax = Subject("kernels", "underfilled_kernels", "softmax")
    assert team(owners(tmp_path, rules), softmax) == "b"


def test_an_exception_takes_back(tmp_path: Path) -> None:
    """What a rule excepts falls to the rule before it."""
    rules = "- {team: a}\n- {layer: kernels, team: b, except: [{kernel: 'ampere_*'}]}\n"
    assert team(owners(tmp_path, rules), GEMM) == "a"
    hopper = Subject("kernels", "misaligned_gemm", "gemm", "sm90_gemm")
    assert team(owners(tmp_path, rules), hopper) == "b"


def test_a_rule_expires(tmp_path: Path) -> None:
    """It counts on its last day, is passed over after it, and that is said."""
    rules = "- {team: a}\n- {layer: kernels, team: b, expires: 2026-06-30}\n"
    known = owners(tmp_path, rules)
    assert team(known, GEMM) == "b"
    later = known.owner_of(GEMM, date(2026, 7, 1))
    assert later.team.id == "a"
    assert "expired on 2026-06-30" in later.lapsed[0]


def test_what_no_rule_is_about(tmp_path: Path) -> None:
    """It goes to the default, or to a team of its own."""
    assert team(owners(tmp_path, "- {layer: runtime, team: a}\n"), GEMM) == "unowned"
    named = owners(tmp_path, "- {layer: runtime, team: a}\n", f"{TEAMS}default: b\n")
    assert team(named, GEMM) == "b"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("- {team: a}\n- {layer: kernel, team: a}\n", ("line 4", "rule 2", "no layer 'kernel'")),
        ("- {team: c}\n", ("line 3", "rule 1", "no team 'c'", "a, b")),
        ("- {diagnosis: late_rnak, team: a}\n", ("line 3", "no diagnosis 'late_rnak'")),
        ("- {label: slow, team: a}\n", ("no label 'slow'", "host-bound")),
        ("- {family: gemmm, team: a}\n", ("no family 'gemmm'",)),
        ("- {teem: a}\n", ("line 3", "rule 1", "teem")),
        ("- {team: a, expires: soon}\n", ("line 3", "rule 1", "expires")),
        ("- {team: a, except: {}}\n", ("rule 1", "exception without any key")),
        ("- {team: a, team: b}\n", ("line 3", "'team' stands twice")),
        ("- {team: a, <<: {layer: runtime}}\n", ("line 3", "merge keys")),
        ("- &one {team: a}\n- {<<: [*one], label: unknown}\n", ("line 4", "merge keys")),
        ("- {team: a\n", ("line",)),
        ("- !!python/object/apply:os.system [true]\n", ("line 3",)),
    ],
)
def test_complaints_name_the_place(tmp_path: Path, rules: str, expected: tuple[str, ...]) -> None:
    """File, line, rule, and what there is instead."""
    with pytest.raises(UsageError) as raised:
        owners(tmp_path, rules)
    assert all(part in str(raised.value) for part in ("owners.yml", *expected))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"a" * 1_000_001,
        b"<<: {rules: [{team: a}]}\nteams: {a: }\n",
        b"teams: {a: }\nrules: !!set {a, b}\n",
    ],
)
def test_what_is_no_file_of_owners(tmp_path: Path, content: bytes) -> None:
    """Empty, binary, nested without end, huge, or with rules that stand nowhere: refused."""
    file = tmp_path / "owners.yml"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"owners\.yml"):
        read_owners(file)


def test_a_missing_file(tmp_path: Path) -> None:
    """Is named."""
    with pytest.raises(UsageError, match=r"nowhere\.yml"):
        read_owners(tmp_path / "nowhere.yml")


def test_folders_are_safe() -> None:
    """Whatever a team is called, its folder is one plain name, and no other's."""
    names = [
        "../../etc",
        "/root",
        "..",
        "",
        "CON",
        "a/b",
        "A b",
        "a\\b",
        "\x1b[31m",
        "é",
        "x" * 300,
    ]
    names += ["💥", ".git", "lpt1.txt", "a\0b", "<img src=x>"]
    found = folder_names(names)
    assert len(set(found.values())) == len(names)
    assert all(part.strip("abcdefghijklmnopqrstuvwxyz0123456789-") == "" for part in found.values())
    assert all(0 < len(part) <= 70 for part in found.values())
    assert not {"con", "lpt1"} & set(found.values())
