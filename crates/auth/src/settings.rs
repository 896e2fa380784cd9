//! What a person configured about the login to one server, with all references expanded.

use url::Url;

use crate::network::Network;
use crate::secret::Secret;

/// How to log in to one server.
#[derive(Clone)]
pub struct Settings {
    /// The server's endpoint. Tokens are stored for it.
    pub server_url: Url,
    /// The address as it is configured, where that is none of the web: the server listens on a socket.
    pub socket: Option<Url>,
    /// How its machines are reached, where the entry has wishes of its own.
    pub network: Option<Network>,
    /// Which of several accounts at the same server.
    pub account: Option<String>,
    /// How we introduce ourselves, `Pillion (Neovim)`.
    pub client_name: String,
    /// What the login is for, as the person knows it.
    pub title: String,
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// Who gave out `client_id`; it is shown to nobody else.
    pub issuer: Option<String>,
    /// Go before what the authorization server says.
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    /// Further parameters of the address that a person opens.
    pub authorization_parameters: Vec<(String, String)>,
    /// Overrides what the authorization server lists.
    pub auth_method: Option<AuthMethod>,
    pub scope: Option<String>,
    pub callback_port: Option<u16>,
    pub redirect_uri: Option<String>,
    pub client_metadata_url: Option<String>,
    pub grant: Grant,
    pub resource: Resource,
    pub tolerate: Vec<String>,
    /// Tokens are bound to a key (RFC 9449). Servers that demand it get it without this, too.
    pub dpop: bool,
}

/// Its addresses and parameters may hold secrets.
impl std::fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Settings")
            .field("key", &self.key())
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// A login without any wishes.
    pub fn new(server_url: Url, client_name: impl Into<String>) -> Settings {
        Settings {
            title: server_url.host_str().unwrap_or_default().to_owned(),
            server_url,
            socket: None,
            network: None,
            account: None,
            client_name: client_name.into(),
            client_id: None,
            client_secret: None,
            issuer: None,
            authorization_endpoint: None,
            token_endpoint: None,
            authorization_parameters: Vec::new(),
            auth_method: None,
            scope: None,
            callback_port: None,
            redirect_uri: None,
            client_metadata_url: None,
            grant: Grant::AuthorizationCode,
            resource: Resource::AsPublished,
            tolerate: Vec::new(),
            dpop: false,
        }
    }

    pub(crate) fn tolerates(&self, what: &str) -> bool {
        self.tolerate.iter().any(|tolerated| tolerated == what)
    }

    /// Where this login is stored.
    pub fn key(&self) -> Key {
        Key::new(
            self.socket.as_ref().unwrap_or(&self.server_url),
            self.account.as_deref(),
        )
    }
}

/// How a token is got.
#[derive(Clone)]
pub enum Grant {
    /// A person logs in here in a browser (RFC 6749 §4.1).
    AuthorizationCode,
    /// A person logs in on another device (RFC 8628).
    DeviceCode,
    /// The client logs in for itself (RFC 6749 §4.4), with a secret or with a key of its own (RFC 7523 §2.2).
    ClientCredentials { key: Option<SigningSettings> },
    /// An assertion that somebody else signed for this workload (RFC 7523 §2.1).
    JwtBearer { assertion: Secret },
    /// Through the identity provider of an enterprise.
    Enterprise(Enterprise),
}

impl Grant {
    /// Whether a person has to do something.
    pub fn is_interactive(&self) -> bool {
        matches!(self, Grant::AuthorizationCode | Grant::DeviceCode)
    }
}

/// A key that signs assertions about this client.
#[derive(Clone)]
pub struct SigningSettings {
    /// PKCS#8 (or PKCS#1 for RSA), as PEM.
    pub private_key: Secret,
    /// `ES256`, `RS256` or `EdDSA`; otherwise as the key is.
    pub algorithm: Option<String>,
    /// Names the key among those of the client.
    pub key_id: Option<String>,
}

/// The identity provider that vouches for the person.
#[derive(Clone)]
pub struct Enterprise {
    pub token_endpoint: String,
    pub issuer: Option<String>,
    pub client_id: String,
    pub client_secret: Option<Secret>,
    /// What the identity provider gave when the person logged in there.
    pub subject_token: Secret,
    /// Default `urn:ietf:params:oauth:token-type:id_token`.
    pub subject_token_type: Option<String>,
}

/// The resource indicator (RFC 8707).
#[derive(Clone, PartialEq, Eq)]
pub enum Resource {
    /// As the server's metadata says, else its URL.
    AsPublished,
    Fixed(String),
    Omitted,
}

/// How the client proves itself at the token endpoint (RFC 6749 §2.3, RFC 7523 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMethod {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

impl AuthMethod {
    pub fn from_name(name: &str) -> Option<AuthMethod> {
        Some(match name {
            "none" => AuthMethod::None,
            "client_secret_basic" => AuthMethod::ClientSecretBasic,
            "client_secret_post" => AuthMethod::ClientSecretPost,
            "private_key_jwt" => AuthMethod::PrivateKeyJwt,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            AuthMethod::None => "none",
            AuthMethod::ClientSecretBasic => "client_secret_basic",
            AuthMethod::ClientSecretPost => "client_secret_post",
            AuthMethod::PrivateKeyJwt => "private_key_jwt",
        }
    }
}

/// What a stored login is found by: the server's URL, and the account where there are several.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    pub fn new(server_url: &Url, account: Option<&str>) -> Key {
        let mut url = server_url.clone();
        if url.scheme() == "unix" {
            // Servers on one socket are told apart by their path, which stands in the fragment.
            url.set_query(server_url.fragment());
        }
        url.set_fragment(account);
        // An http URL has a host, so both succeed.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Key(url.into())
    }

    pub(crate) fn stored(text: &str) -> Key {
        Key(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A short name for a login whose entry is gone.
    pub fn handle(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.0.as_bytes());
        let digits = &digest.as_ref()[..4];
        digits
            .iter()
            .fold("#".to_owned(), |text, byte| format!("{text}{byte:02x}"))
    }

    /// The server's URL as it may be shown, and the account.
    pub fn shown(&self) -> (String, Option<String>) {
        let account = self.0.split_once('#').map(|(_, account)| account.to_owned());
        (crate::error::shown_url(&self.0), account)
    }
}

/// The query of a URL may be a secret.
impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Key({})", self.shown().0)
    }
}
