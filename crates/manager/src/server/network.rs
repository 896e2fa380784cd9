//! How one remote server is reached: certificates of its own, or a socket in place of a host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{Error, ErrorKind, ServerEntry};
use reqwest::{Certificate, ClientBuilder, Identity};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use url::Url;

use super::launch::Origin;
use crate::config::expand::Expander;
use crate::env::Env;
use crate::limits;

/// Host and port in the requests to a server that listens on a socket. Nothing is looked up or connected by this name.
const SOCKET_HOST: &str = "http://localhost";

/// What an entry wishes about its network.
#[derive(Clone, Default)]
pub(crate) struct Network {
    authorities: Vec<Certificate>,
    identity: Option<Identity>,
    socket: Option<PathBuf>,
}

/// The address of a server as requests use it, and as it is configured where that is a socket.
pub(crate) fn address(url: Url) -> (Url, Option<Url>) {
    if url.scheme() != "unix" {
        return (url, None);
    }
    let path = url.fragment().unwrap_or("/").trim_start_matches('/');
    let served = Url::parse(&format!("{SOCKET_HOST}/{path}"));
    // Whatever the fragment holds, it is a path behind a good host.
    (served.unwrap_or_else(|_| url.clone()), Some(url))
}

impl Network {
    /// Reads the certificates of an entry. `configured` is its address where that is a socket.
    pub async fn read(
        entry: &ServerEntry,
        configured: Option<&Url>,
        lookup: &(dyn Fn(&str) -> Option<String> + Sync),
        env: &Env,
        origin: &Origin,
    ) -> Result<Network, Error> {
        let mut expander = Expander::new(lookup);
        let tls = entry.tls.clone().unwrap_or_default();
        let mut path = |member: &Option<protocol::Dir>| {
            member
                .as_ref()
                .map(|path| origin.base.join(env.expand_tilde(&expander.text(path))))
        };
        let (ca, cert, key) = (path(&tls.ca), path(&tls.cert), path(&tls.key));
        super::launch::unset(expander)?;
        for (member, path) in [("tls.ca", &ca), ("tls.cert", &cert), ("tls.key", &key)] {
            if let Some(path) = path {
                origin.check_inside(env, member, path)?;
            }
        }
        let mut network = Network {
            socket: configured.map(socket_path),
            ..Network::default()
        };
        if let Some(path) = &ca {
            let pem = text("tls.ca", path).await?;
            certificates("tls.ca", path, &pem)?;
            network.authorities = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(|_| bad("tls.ca", path, "it cannot be read as certificates"))?;
        }
        if let Some(path) = &cert {
            let pem = text("tls.cert", path).await?;
            certificates("tls.cert", path, &pem)?;
            // A file may hold both.
            let (member, key_path, key_pem) = match &key {
                Some(key) => ("tls.key", key, text("tls.key", key).await?),
                None => ("tls.cert", path, String::new()),
            };
            private_key(member, key_path, if key.is_some() { &key_pem } else { &pem })?;
            let both = format!("{pem}\n{key_pem}");
            network.identity = Some(
                Identity::from_pem(both.as_bytes())
                    .map_err(|_| bad(member, key_path, "it cannot be read as a private key"))?,
            );
        }
        network.check()?;
        Ok(network)
    }

    /// Whether the process's own client does.
    pub fn is_usual(&self) -> bool {
        self.authorities.is_empty() && self.identity.is_none() && self.socket.is_none()
    }

    /// A key that belongs to another certificate shows only when a client is made.
    fn check(&self) -> Result<(), Error> {
        if self.identity.is_none() {
            return Ok(());
        }
        let builder = mcp::client_builder(&mcp::ClientOptions::default()).tls_certs_only([]);
        match builder.identity_of(self).build() {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(
                ErrorKind::StartFailed,
                "the certificate of `tls.cert` and the private key of `tls.key` do not belong together",
            )
            .hint("set both to the files that were made together")),
        }
    }

    /// The client for the server itself.
    pub fn client(&self) -> Result<reqwest::Client, Error> {
        let builder = || self.own(mcp::client_builder(&mcp::ClientOptions::default()));
        let client = builder().build().or_else(|error| {
            // A bare container has no certificates at all: those of the entry are all there are.
            tracing::warn!("only the certificates of the entry are trusted: {error}");
            builder().tls_certs_only([]).build()
        });
        client.map_err(|_| {
            Error::new(ErrorKind::StartFailed, "the certificates of `tls` cannot be used")
                .hint("check that the files hold certificates, with `openssl x509 -noout -text -in FILE`")
        })
    }

    fn own(&self, builder: ClientBuilder) -> ClientBuilder {
        let builder = self.others(builder).identity_of(self);
        match &self.socket {
            Some(socket) => builder.unix_socket(socket.as_path()),
            None => builder,
        }
    }

    fn others(&self, builder: ClientBuilder) -> ClientBuilder {
        match self.authorities.is_empty() {
            true => builder,
            false => builder.tls_certs_merge(self.authorities.clone()),
        }
    }

    /// The same for the requests of a login.
    pub fn of_logins(&self) -> Option<auth::Network> {
        if self.is_usual() {
            return None;
        }
        let (own, others) = (self.clone(), self.clone());
        let builder = || mcp::client_builder(&mcp::ClientOptions::default());
        Some(auth::Network::new(
            Arc::new(move || own.own(builder())),
            Arc::new(move || others.others(builder())),
        ))
    }
}

trait WithIdentity {
    fn identity_of(self, network: &Network) -> Self;
}

impl WithIdentity for ClientBuilder {
    fn identity_of(self, network: &Network) -> ClientBuilder {
        match &network.identity {
            Some(identity) => self.identity(identity.clone()),
            None => self,
        }
    }
}

/// A fault of a file; its text is not quoted.
fn bad(member: &str, path: &Path, what: &str) -> Error {
    Error::new(
        ErrorKind::StartFailed,
        format!("`{member}` (`{}`): {what}", path.display()),
    )
    .hint(format!("correct the file, or `{member}` of the entry"))
    .file(path.display().to_string())
}

async fn text(member: &str, path: &Path) -> Result<String, Error> {
    let owned = path.to_owned();
    let read = tokio::task::spawn_blocking(move || files::read_text(&owned, limits::PEM_BYTES)).await;
    match read {
        Ok(Ok(Some(text))) => Ok(text),
        Ok(Ok(None)) => Err(bad(member, path, "there is no such file")),
        Ok(Err(error)) => Err(bad(member, path, &error.to_string())),
        Err(error) => Err(bad(member, path, &error.to_string())),
    }
}

fn certificates(member: &str, path: &Path, pem: &str) -> Result<(), Error> {
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        certificate.map_err(|_| bad(member, path, "it is no PEM text"))?;
        count += 1;
    }
    match count {
        0 => Err(bad(
            member,
            path,
            "it holds no certificate (PEM, `BEGIN CERTIFICATE`)",
        )),
        _ => Ok(()),
    }
}

fn private_key(member: &str, path: &Path, pem: &str) -> Result<(), Error> {
    if pem.contains("ENCRYPTED") {
        return Err(bad(
            member,
            path,
            "its private key is locked with a passphrase, which nobody could be asked for; store it without one",
        ));
    }
    PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map(drop)
        .map_err(|_| bad(member, path, "it holds no private key (PEM, `BEGIN PRIVATE KEY`)"))
}

/// The path of a socket as the file system has it.
fn socket_path(url: &Url) -> PathBuf {
    let path = percent_encoding::percent_decode_str(url.path());
    PathBuf::from(path.decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_a_path_and_what_it_serves_a_fragment() {
        for (configured, served, socket) in [
            (
                "unix:///tmp/a.sock#/mcp/x",
                "http://localhost/mcp/x",
                "/tmp/a.sock",
            ),
            ("unix:///tmp/a%20b.sock", "http://localhost/", "/tmp/a b.sock"),
        ] {
            let (url, other) = address(Url::parse(configured).unwrap());
            assert_eq!(url.as_str(), served);
            assert_eq!(socket_path(&other.unwrap()), Path::new(socket));
        }
        assert!(address(Url::parse("https://h/mcp#x").unwrap()).1.is_none());
    }
}
