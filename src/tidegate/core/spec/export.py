"""The JSON Schema of a spec, for editors to complete and check with."""

from __future__ import annotations

import json

from tidegate.core.spec.pipeline import Pipeline


def export_schema() -> str:
    """Write the JSON Schema of a pipeline's spec."""
    schema = Pipeline.model_json_schema(by_alias=True)
    # Pydantic allows keys beside the pattern of a name; the model does not.
    schema["properties"]["tables"]["additionalProperties"] = False
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
