"""Calibration in Postgres, against a server that runs for these tests."""

import pytest

from spectral_irt import fit_in_database, read
from spectral_irt.errors import DatabaseError, ReadError, SpectralIrtError

from .conftest import DESIGNS, ask_postgres, drawn, in_postgres, responses_of
from .test_duckdb import assert_same

pytestmark = pytest.mark.slow
OURS = "SELECT COUNT(*) FROM pg_class WHERE relname LIKE 'spectral%'"
SMALL = drawn(60, 5, 1, 1)


@pytest.mark.parametrize(
    ("design", "weighting"), [("a short test", "ability"), ("a long test", "persons"), ("no link", "ability")]
)
def test_the_same_as_at_hand(postgres, design, weighting):
    answers, name = DESIGNS[design](), 'an"swers; DROP'
    in_postgres(postgres, answers, name)
    assert_same(fit_in_database(postgres, name, weighting=weighting), answers, weighting=weighting)
    assert ask_postgres(postgres, OURS) == [(0,)]


def as_user(postgres, name):
    """The address for a person of little rights, who may read nothing yet."""
    for sql in (f"DROP OWNED BY {name}", f"DROP ROLE {name}"):
        try:
            ask_postgres(postgres, sql)
        except Exception:  # the first time
            continue
    ask_postgres(postgres, f"CREATE ROLE {name} LOGIN")
    return postgres.replace("postgresql://postgres:@", f"postgresql://{name}:secret@")


def test_rights_that_are_missing(postgres):
    in_postgres(postgres, SMALL)
    uri = as_user(postgres, "ann")
    with pytest.raises(DatabaseError, match=r"permission denied for table answers. Ask for the right to read") as told:
        fit_in_database(uri, "answers")
    assert "secret" not in str(told.value)
    ask_postgres(postgres, "GRANT SELECT ON answers TO ann")
    ask_postgres(postgres, "REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
    try:
        with pytest.raises(DatabaseError, match=r"permission denied to create temporary tables .*\(TEMPORARY\)"):
            fit_in_database(uri, "answers")
    finally:
        ask_postgres(postgres, "GRANT TEMPORARY ON DATABASE postgres TO PUBLIC")
    assert len(fit_in_database(uri, "public.answers").difficulty_) == 5


def test_a_server_that_goes_away(postgres):
    in_postgres(postgres, SMALL)
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    with pytest.raises(DatabaseError, match=r"the connection was lost while it was asked to .*nothing was written"):
        fit_in_database(postgres, "answers", progress=lambda text: "weights" in text and ask_postgres(postgres, others))
    assert ask_postgres(postgres, OURS) == [(0,)]


def test_what_is_not_there(postgres):
    with pytest.raises(DatabaseError, match="there is no table or view 'nowhere' that we may see; it has "):
        fit_in_database(postgres, "nowhere")
    with pytest.raises(DatabaseError, match=r"postgresql://ann@127.0.0.1:9/tests: cannot connect: .*refused") as told:
        fit_in_database("postgresql://ann:secret@127.0.0.1:9/tests", "answers")
    assert "secret" not in str(told.value)


def test_a_view_and_numbers_as_labels(postgres):
    in_postgres(postgres, SMALL, "rows")
    numbers = "substr(person, 2)::int AS student, substr(item, 2)::int AS task, (response = 1) AS correct"
    for name, columns in (("numbered", numbers), ("texts", "person, item, 'yes' AS response")):
        ask_postgres(postgres, f"CREATE OR REPLACE VIEW {name} AS SELECT {columns} FROM rows")
    assert fit_in_database(postgres, "numbered").item_labels_.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ReadError, match="column 'response' is of type string"):
        fit_in_database(postgres, "texts")


def test_a_query_is_read(postgres):
    in_postgres(postgres, SMALL)
    ask_postgres(postgres, "ALTER TABLE answers ALTER COLUMN response TYPE numeric")
    found = read(sql="SELECT person, item, response FROM answers", database=postgres)
    assert found.digest() == responses_of(SMALL).digest()


def test_numbers_with_all_their_digits_are_responses(postgres):
    in_postgres(postgres, SMALL)
    plain = fit_in_database(postgres, "answers")
    ask_postgres(postgres, "ALTER TABLE answers ALTER COLUMN response TYPE numeric")
    exact = fit_in_database(postgres, "answers")
    assert exact.difficulty_.tolist() == pytest.approx(plain.difficulty_.tolist(), abs=1e-12)
    ask_postgres(postgres, "UPDATE answers SET response = 0.5 WHERE person = (SELECT min(person) FROM answers)")
    with pytest.raises(SpectralIrtError, match=r"0\.5"):
        fit_in_database(postgres, "answers")
    ask_postgres(postgres, "ALTER TABLE answers ALTER COLUMN response TYPE text")
    with pytest.raises(ReadError, match="is of type str"):
        fit_in_database(postgres, "answers")


def test_a_query_writes_nothing(postgres):
    in_postgres(postgres, SMALL)
    ask_postgres(postgres, "CREATE SEQUENCE IF NOT EXISTS counted")
    before = ask_postgres(postgres, "SELECT last_value, is_called FROM counted")
    for sql in ("SELECT nextval('counted')", "DELETE FROM answers RETURNING *", "DROP TABLE answers"):
        with pytest.raises(DatabaseError, match=r"read-only|syntax"):
            read(sql=sql, database=postgres)
    # What a sequence has given out, no rollback takes back.
    assert ask_postgres(postgres, "SELECT last_value, is_called FROM counted") == before
    ask_postgres(postgres, "DROP SEQUENCE counted")
    assert ask_postgres(postgres, "SELECT COUNT(*) FROM answers") == [(SMALL.height,)]
