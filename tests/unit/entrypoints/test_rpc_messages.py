"""JSON-RPC 2.0, word for word: what is a message, and what is answered to what is none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.entrypoints.rpc.messages import (
    DEEPEST,
    INVALID_REQUEST,
    LONGEST_BATCH,
    PARSE_ERROR,
    Batch,
    Refusal,
    Request,
    Response,
    RpcError,
    encode,
    encode_or_fail,
    error_response,
    parse_message,
    response,
)
from tests.cases import for_each


def request(**more: Any) -> bytes:
    """A request with something else in it."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "where", **more}).encode()


@for_each("id_", ["a", "", 0, -1, 1.5, None, 2**70])
def test_an_id_is_a_text_a_number_or_null(id_: Any) -> None:
    """And comes back as it was."""
    found = parse_message(request(id=id_))
    assert found == Request("where", None, id_)
    assert json.loads(encode(response(id_, {})))["id"] == id_


def test_what_has_no_id_is_a_notification() -> None:
    """Nobody waits for an answer to it."""
    found = parse_message(b'{"jsonrpc": "2.0", "method": "where", "params": [1]}')
    assert found == Request("where", [1], None, is_notification=True)


@for_each(
    ("payload", "code", "id_"),
    [
        (b"", PARSE_ERROR, None),
        (b"{", PARSE_ERROR, None),
        (b"\xff{}", PARSE_ERROR, None),
        (b"\xef\xbb\xbf{}", PARSE_ERROR, None),
        ("{}".encode("utf-16"), PARSE_ERROR, None),
        (request(params=[1]).replace(b"[1]", b"[NaN]"), PARSE_ERROR, None),
        (request(params=[1]).replace(b"[1]", b"[-Infinity]"), PARSE_ERROR, None),
        (request(params=[1]).replace(b"[1]", b"[1e999]"), PARSE_ERROR, None),
        (request(params=[1]).replace(b"[1]", b"[%b]" % (b"1" * 5_000)), PARSE_ERROR, None),
        (b"1", INVALID_REQUEST, None),
        (b'"text"', INVALID_REQUEST, None),
        (b"[]", INVALID_REQUEST, None),
        (b"{}", INVALID_REQUEST, None),
        (request(id=True), INVALID_REQUEST, None),
        (request(id=[1]), INVALID_REQUEST, None),
        (request(id={}), INVALID_REQUEST, None),
        (request(jsonrpc="1.0"), INVALID_REQUEST, 1),
        (request(method=7), INVALID_REQUEST, 1),
        (request(params="x"), INVALID_REQUEST, 1),
        (request(params=7), INVALID_REQUEST, 1),
        (request(params=["\ud800"]), INVALID_REQUEST, 1),
        (request(params={"\udfff": 1}), INVALID_REQUEST, 1),
    ],
)
def test_what_is_no_message_is_refused_by_its_code(payload: bytes, code: int, id_: Any) -> None:
    """With the id where it can be told, and null where it cannot."""
    found = parse_message(payload)
    assert isinstance(found, Refusal)
    assert (found.error.code, found.id) == (code, id_)
    assert json.loads(encode(error_response(found.id, found.error)))["error"]["message"]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_has_a_limit(opening: str, closing: str) -> None:
    """What is deeper is refused, however deep it is; brackets in a text count for nothing."""
    for depth, is_taken in ((DEEPEST, True), (DEEPEST + 1, False), (100_000, False)):
        inner = depth - 1  # the request itself is a level
        nested = opening * inner + "1" + closing * inner
        found = parse_message(
            request().replace(b'"where"', b'"where", "params": ' + nested.encode())
        )
        assert isinstance(found, Request) is is_taken
        if isinstance(found, Refusal):
            assert found.error.code == INVALID_REQUEST
    assert isinstance(parse_message(request(params=["[" * 5_000])), Request)


def test_a_batch_has_a_limit() -> None:
    """One of ten thousand is refused whole, one that is shorter is taken."""
    one = request()
    found = parse_message(b"[" + b",".join([one] * LONGEST_BATCH) + b"]")
    assert isinstance(found, Batch)
    assert len(found.messages) == LONGEST_BATCH
    found = parse_message(b"[" + b",".join([one] * 10_000) + b"]")
    assert isinstance(found, Refusal)
    assert (found.error.code, found.id) == (INVALID_REQUEST, None)


def test_a_batch_may_hold_what_is_no_message() -> None:
    """Each is refused alone."""
    found = parse_message(b"[1, %b, []]" % request())
    assert isinstance(found, Batch)
    assert [type(each) for each in found.messages] == [Refusal, Request, Refusal]


def test_answers_of_the_client_are_told_from_its_requests() -> None:
    """By what they hold."""
    assert isinstance(parse_message(b'{"jsonrpc": "2.0", "id": "x", "result": null}'), Response)
    assert isinstance(
        parse_message(b'{"jsonrpc": "2.0", "id": "x", "error": {"code": 1}}'), Response
    )
    for error in (None, 7, {"code": "x"}, {"code": True, "message": 1}):
        assert RpcError.from_data(error).code == -32603
    assert RpcError.from_data({"code": 7, "message": "no", "data": 1}).args == (7, "no", 1)


def test_half_a_character_can_be_sent_back() -> None:
    """Escaped, as it came."""
    assert json.loads(encode(response("\ud800", "\U0001f98a"))) == {
        "jsonrpc": "2.0",
        "id": "\ud800",
        "result": "\U0001f98a",
    }
    assert b"\n" not in encode(response(1, "two\nlines"))


def test_an_answer_that_json_cannot_say_is_a_failure_of_its_own() -> None:
    """The others of its batch are told."""
    broken = response(1, {"x": float("nan")})
    error = json.loads(encode_or_fail(broken))
    assert (error["id"], error["error"]["code"]) == (1, -32603)
    assert json.loads(encode_or_fail([broken, response(2, [])])) == [error, response(2, [])]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "jsonrpc", "method", "params", "x"]), inner)
    ),
    max_leaves=8,
)


@given(json_values | st.binary(max_size=60))
def test_whatever_comes_is_read_as_something(value: Any) -> None:
    """And what is refused can be answered."""
    payload = value if isinstance(value, bytes) else json.dumps(value).encode()
    found = parse_message(payload)
    for each in found.messages if isinstance(found, Batch) else [found]:
        if isinstance(each, Refusal):
            encode(error_response(each.id, each.error))
        else:
            assert isinstance(each, Request | Response)
