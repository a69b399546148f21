"""The document that `rpc.discover` gives, against the meta-schema that OpenRPC publishes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from herdbook.entrypoints.client import Client
from tests.e2e.conftest import Person

PACKAGES = ("@open-rpc/meta-schema", "@json-schema-tools/meta-schema")
PRINT = "console.log(JSON.stringify(process.argv.slice(1).map((name) => require(name).default)))"


def published(node: str, node_modules: Path) -> list[dict[str, Any]]:
    """The schemas as npm has them."""
    told = subprocess.run(
        [node, "-e", PRINT, *(str(node_modules / each) for each in PACKAGES)],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    schemas: list[dict[str, Any]] = json.loads(told.stdout)
    return schemas


def test_the_document_is_openrpc(
    person: Person, app: Path, node_modules: Path, program: Callable[[str], str], herdbook: str
) -> None:
    """Every word of it is as the meta-schema wants it, and a word that is not is found."""
    openrpc, json_schema = published(program("node"), node_modules)
    address = "https://meta.json-schema.tools"
    registry: Registry[Any] = Registry().with_resources(
        (uri, Resource(json_schema, DRAFT7)) for uri in (address, f"{address}/")
    )
    openrpc["$schema"] = "http://json-schema.org/draft-07/schema#"
    validator = Draft7Validator(openrpc, registry=registry)
    with Client.spawn(app, variables=person.variables, program=herdbook) as herd:
        document = herd.call("rpc.discover")
    assert [each.message for each in validator.iter_errors(document)] == []
    document["methods"][0]["params"].append({"name": "no schema"})
    assert not validator.is_valid(document)
