"""What the conventions call the providers of models."""

from __future__ import annotations

from typing import Final

__all__ = ["UNKNOWN_PROVIDER", "provider_name"]

UNKNOWN_PROVIDER: Final = "_OTHER"
"""OpenTelemetry's word for a required value that nobody can tell. A guess from the class would be read as a fact."""

_CONVENTIONAL: Final = {
    "amazon_bedrock": "aws.bedrock",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
    "ibm": "ibm.watsonx.ai",
    "watsonx": "ibm.watsonx.ai",
    "moonshot": "moonshot_ai",
}
"""What model classes (LangChain's above all) say -> what the conventions say, where the two differ."""


def provider_name(said: str | None) -> str:
    """Return the conventions' name of the provider that a model's class names; others are kept as they are.

    >>> provider_name("amazon_bedrock"), provider_name("openai"), provider_name("in-house"), provider_name(None)
    ('aws.bedrock', 'openai', 'in-house', '_OTHER')
    """
    return UNKNOWN_PROVIDER if said is None else _CONVENTIONAL.get(said, said)
