//! The listener on this machine that a browser is redirected to after a login. It is there for one login only.

pub(crate) mod page;
pub(crate) mod redirect;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::error::AuthError;
use crate::limits::{CALLBACK_CONNECTIONS, CALLBACK_HEAD, CALLBACK_READ, CALLBACK_WRITE};
use page::Page;
use redirect::{Plan, Redirect};

/// Waits for the browser of one login.
pub(crate) struct Listener {
    pub redirect_uri: String,
    visits: mpsc::Receiver<(Redirect, Browser)>,
    /// Ends the listener and whatever it still serves.
    closing: CancellationToken,
}

/// The browser that brought the redirect. It waits for its page.
pub(crate) struct Browser {
    page: oneshot::Sender<Page>,
    served: CancellationToken,
}

impl Browser {
    /// Answers the browser, and waits a moment until the page is on its way.
    pub async fn answer(self, page: Page) {
        // The browser may be gone.
        let _ = self.page.send(page);
        let _ = tokio::time::timeout(CALLBACK_WRITE, self.served.cancelled()).await;
    }
}

struct Shared {
    plan: Plan,
    port: u16,
    state: String,
    visits: mpsc::Sender<(Redirect, Browser)>,
    closing: CancellationToken,
}

impl Listener {
    /// Listens where the plan says. Redirects are accepted with this state only.
    pub async fn open(plan: Plan, state: String) -> Result<Listener, AuthError> {
        let mut listeners = Vec::new();
        let mut port = plan.port;
        for address in &plan.addresses {
            match bind(*address, port).await {
                Ok(listener) => {
                    port = listener.local_addr().map_or(port, |address| address.port());
                    listeners.push(listener);
                }
                // The second address is a courtesy.
                Err(_) if !listeners.is_empty() => {}
                Err(error) => {
                    return Err(AuthError::RedirectBusy {
                        port,
                        reason: error.to_string(),
                    });
                }
            }
        }
        let (sender, visits) = mpsc::channel(1);
        let closing = CancellationToken::new();
        let redirect_uri = plan.redirect_uri(port);
        let shared = Arc::new(Shared {
            plan,
            port,
            state,
            visits: sender,
            closing: closing.clone(),
        });
        for listener in listeners {
            tokio::spawn(accept(listener, Arc::clone(&shared)));
        }
        Ok(Listener {
            redirect_uri,
            visits,
            closing,
        })
    }

    /// The browser with the right redirect. Whatever else comes is refused meanwhile.
    pub async fn visit(&mut self) -> Option<(Redirect, Browser)> {
        let visit = self.visits.recv().await;
        self.visits.close();
        visit
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

async fn bind(address: IpAddr, port: u16) -> std::io::Result<TcpListener> {
    let address = SocketAddr::new(address, port);
    let socket = match address {
        SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4(),
        SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6(),
    }?;
    // A fixed port is free again right after the last login. Windows would let two programs share it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(16)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let seats = Arc::new(Semaphore::new(CALLBACK_CONNECTIONS));
    loop {
        let stream = tokio::select! {
            // The redirect came: nobody else is waited for.
            () = shared.visits.closed() => return,
            () = shared.closing.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
        };
        let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else {
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let closing = shared.closing.clone();
            closing.run_until_cancelled(serve(stream, shared)).await;
            drop(seat);
        });
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let served = CancellationToken::new();
    let _guard = served.clone().drop_guard();
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, served) = (Arc::clone(&shared), served.clone());
        async move { Ok::<_, Infallible>(respond(answer(&request, &shared, served).await)) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(CALLBACK_HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(CALLBACK_READ)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("a visitor of the login page left early: {error}");
    }
}

async fn answer(request: &Request<Incoming>, shared: &Shared, served: CancellationToken) -> Page {
    if request.uri().path() != shared.plan.path || !is_ours(request, shared) {
        return Page::NotFound;
    }
    if request.method() != Method::GET {
        return Page::Method;
    }
    let query = request.uri().query().unwrap_or_default();
    let Ok(redirect) = Redirect::parse(query, &shared.state) else {
        return Page::Stranger;
    };
    let (page, said) = oneshot::channel();
    let browser = Browser { page, served };
    // Only the first one counts: a code is good for one exchange.
    if shared.visits.try_send((redirect, browser)).is_err() {
        return Page::Stranger;
    }
    said.await
        .unwrap_or_else(|_| Page::Failed("The login was cancelled.".to_owned()))
}

/// Whether the browser was sent here by name: a page of another site must not reach the listener under its own name
/// (DNS rebinding). Behind a forwarder the name is that of the redirect URI, or the forwarder's.
fn is_ours(request: &Request<Incoming>, shared: &Shared) -> bool {
    if !shared.plan.is_direct {
        return true;
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    host.is_some_and(|host| {
        let name = host.strip_suffix(&format!(":{}", shared.port)).unwrap_or(host);
        ["127.0.0.1", "localhost", "[::1]"].contains(&name)
    })
}

fn respond(page: Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(page.html())));
    *response.status_mut() = page.status();
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
        // The address holds the code.
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONNECTION, "close"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if matches!(page, Page::Method) {
        headers.insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}
