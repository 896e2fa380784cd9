// A real authorization server with a switch for the tests: https://www.npmjs.com/package/oidc-provider on 127.0.0.1:$PORT.
//
// Clients register themselves, a person signs in and consents on its pages, refresh tokens are rotated, tokens can be
// revoked, and access tokens are for one MCP server. MCP servers ask it what a token is worth (RFC 7662), as the
// client `$INTROSPECTOR` with the secret `$INTROSPECTOR_SECRET`.
// Beside it, `GET /test/events` counts what happened, and `POST /test/expire` ends all access tokens.
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const port = Number(process.env.PORT);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: process.env.INTROSPECTOR,
      client_secret: process.env.INTROSPECTOR_SECRET,
      redirect_uris: [],
      response_types: [],
      grant_types: [],
    },
  ],
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true, allowedPolicy: (_ctx, client) => client.clientId === process.env.INTROSPECTOR },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_ctx, resource) => ({ audience: resource, scope: "calendar:read", accessTokenTTL: 3600 }),
    },
  },
  scopes: ["offline_access"],
  ttl: { AccessToken: 3600, RefreshToken: 86400, Grant: 86400, Session: 86400, Interaction: 600 },
  cookies: { keys: ["one run only"] },
});

const events = {};
const accessTokens = new Set();
for (const name of [
  "registration_create.success",
  "authorization.success",
  "authorization.error",
  "grant.success",
  "grant.error",
  "grant.revoked",
  "refresh_token.consumed",
  "refresh_token.destroyed",
]) {
  provider.on(name, () => (events[name] = (events[name] ?? 0) + 1));
}
provider.on("access_token.saved", (token) => accessTokens.add(token));
provider.on("server_error", (_ctx, error) => console.error(error));

const oidc = provider.callback();
createServer(async (request, response) => {
  const asked = `${request.method} ${request.url}`;
  console.log(asked.split("?")[0]);
  if (asked === "GET /test/events") {
    response.setHeader("content-type", "application/json").end(JSON.stringify(events));
  } else if (asked === "POST /test/expire") {
    await Promise.all([...accessTokens].map((token) => token.destroy()));
    accessTokens.clear();
    response.end();
  } else {
    await oidc(request, response);
  }
}).listen(port, "127.0.0.1");
