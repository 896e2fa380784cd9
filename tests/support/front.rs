//! Other ways to a scripted HTTP host: a unix socket, or TLS with certificates of an authority of the tests' own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::HttpHost;
use super::scripted::http::runtime;

/// An authority, and what it signs.
pub struct Authority {
    /// Its certificate as PEM.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate for this machine and its key, as PEM.
    pub fn sign(&self) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

/// Puts TLS in front of a host, with a certificate of the authority. `wants_certificate`: those who show none of it are
/// turned away. Says how many came and showed one.
pub fn tls(host: &mut HttpHost, authority: &Authority, wants_certificate: bool) -> Arc<AtomicUsize> {
    let behind = address(host);
    let roots = |pem: &str| {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots.add(certificate.expect("PEM")).expect("a good certificate");
        }
        Arc::new(roots)
    };
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(&authority.pem), Arc::clone(&provider));
    let verifier = match wants_certificate {
        true => verifier,
        false => verifier.allow_unauthenticated(),
    };
    let (certificate, key) = authority.sign();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM"),
        )
        .expect("a key that fits");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (listener, own) = runtime().block_on_here(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("bound");
        (listener, own)
    });
    host.origin = format!("https://{own}");
    let shown = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&shown);
    runtime().spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, count) = (acceptor.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let stream = match acceptor.accept(stream).into_fallible().await {
                    Ok(stream) => stream,
                    Err((_, mut stream)) => {
                        // Whoever is turned away is to learn why: a connection with unread bytes would be reset.
                        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                        return;
                    }
                };
                if stream.get_ref().1.peer_certificates().is_some() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
                pump(stream, behind).await;
            });
        }
    });
    shown
}

/// Lets a host be reached through a socket only: its address becomes the one that requests through a socket carry.
pub fn socket(host: &mut HttpHost, path: &Path) {
    let behind = address(host);
    let path = path.to_owned();
    let listener = runtime().block_on_here(async move { UnixListener::bind(path).expect("a new socket") });
    host.origin = "http://localhost".to_owned();
    runtime().spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(pump(stream, behind));
        }
    });
}

fn address(host: &HttpHost) -> SocketAddr {
    let address = host.origin.strip_prefix("http://").expect("its own address");
    address.parse().expect("an address with a port")
}

async fn pump(mut stream: impl AsyncRead + AsyncWrite + Unpin, behind: SocketAddr) {
    if let Ok(mut host) = TcpStream::connect(behind).await {
        // Either side may go away at any time.
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut host).await;
    }
}

/// Runs something on the runtime of the hosts and waits for it.
trait BlockOnHere {
    fn block_on_here<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T;
}

impl BlockOnHere for tokio::runtime::Handle {
    fn block_on_here<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.spawn(async move { sender.send(work.await).expect("the test waits for it") });
        receiver.recv().expect("it is done")
    }
}
