"""A real MCP server behind a login, by FastMCP, on 127.0.0.1:$PORT.

With `$ISSUER` its tokens come from that authorization server, and it asks there what each is worth (RFC 7662).
Without, it is its own authorization server.
"""

import os

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.auth.providers.introspection import IntrospectionTokenVerifier
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions

PORT = int(os.environ["PORT"])
ORIGIN = f"http://127.0.0.1:{PORT}"
SCOPES = ["calendar:read"]


def guard():
    issuer = os.environ.get("ISSUER")
    if issuer is None:
        return InMemoryOAuthProvider(
            base_url=ORIGIN,
            client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES),
            revocation_options=RevocationOptions(enabled=True),
            required_scopes=SCOPES,
        )
    verifier = IntrospectionTokenVerifier(
        introspection_url=f"{issuer}/token/introspection",
        client_id=os.environ["INTROSPECTOR"],
        client_secret=os.environ["INTROSPECTOR_SECRET"],
        required_scopes=SCOPES,
        audience=f"{ORIGIN}/mcp",
    )
    return RemoteAuthProvider(token_verifier=verifier, authorization_servers=[issuer], base_url=ORIGIN)


server = FastMCP("calendar", auth=guard())


@server.tool
def today() -> str:
    """What is on today, and by which rights it was seen."""
    return f"Ada rides pillion at 10:00 (seen with {' '.join(get_access_token().scopes)})"


server.run(transport="http", host="127.0.0.1", port=PORT, show_banner=False)
