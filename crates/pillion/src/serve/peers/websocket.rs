//! A peer's WebSocket (RFC 6455): the requests of [`rpc`], several at a time, and news for those who subscribed.

use std::sync::Arc;

use futures_util::io::{BufReader, BufWriter};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use protocol::{Error, ErrorKind, Tier};
use soketto::connection::Error as Fault;
use soketto::handshake::http::Server;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt as _};

use super::rpc::{self, Answer, Carrier};
use super::{Door, HttpResponse, refusal};
use crate::serve::{envelope, limits};

type Stream = BufReader<BufWriter<Compat<TokioIo<Upgraded>>>>;

/// Answers the handshake, and serves the connection that it opens.
pub fn accept(door: &Arc<Door>, tier: Tier, request: Request<Incoming>) -> HttpResponse {
    let mut handshake = Server::new();
    let response = match handshake.receive_request(&request) {
        Ok(response) => response.map(|()| super::HttpBody::default()),
        Err(fault) => {
            let error = Error::new(ErrorKind::InvalidRequest, fault.to_string());
            return refusal(StatusCode::BAD_REQUEST, &error);
        }
    };
    let door = Arc::clone(door);
    tokio::spawn(async move {
        match hyper::upgrade::on(request).await {
            Ok(upgraded) => {
                let stream = BufReader::new(BufWriter::new(TokioIo::new(upgraded).compat()));
                let mut builder = handshake.into_builder(stream);
                builder.set_max_message_size(limits::PEER_BODY_BYTES);
                let (sender, receiver) = builder.finish();
                tokio::select! {
                    () = converse(&door, tier, receiver, sender) => {}
                    () = door.stop.cancelled() => {}
                }
            }
            Err(error) => tracing::debug!(%error, "a peer's WebSocket did not come about"),
        }
    });
    response
}

/// Reads until the peer ends. Requests run beside each other; whoever does not read its answers is not read either.
async fn converse(
    door: &Arc<Door>,
    tier: Tier,
    mut receiver: soketto::Receiver<Stream>,
    sender: soketto::Sender<Stream>,
) {
    let (outgoing, queue) = mpsc::channel(limits::PEER_MESSAGES);
    let room = Arc::new(Semaphore::new(limits::PEER_MESSAGES));
    let subscriptions = Arc::new(Semaphore::new(limits::PEER_SUBSCRIPTIONS));
    let reading = async {
        let mut body = Vec::new();
        loop {
            body.clear();
            let incoming = receiver.receive(&mut body).await;
            let refused = match incoming {
                Ok(soketto::Incoming::Data(_)) => None,
                Ok(soketto::Incoming::Pong(_)) => continue,
                Err(Fault::MessageTooLarge { .. }) => {
                    Some(Answer::error(None, rpc::too_large(limits::PEER_BODY_BYTES)))
                }
                Ok(soketto::Incoming::Closed(_)) | Err(_) => return,
            };
            let refused = refused.or_else(|| {
                let full = (!door.bucket(Some(tier)).take()).then(super::too_often)?;
                Some(Answer::error(envelope::id_in_head(&body).as_ref(), full))
            });
            let sent = match refused {
                Some(answer) => outgoing.send(answer.text).await,
                None => {
                    let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                        return;
                    };
                    let (door, body) = (Arc::clone(door), std::mem::take(&mut body));
                    let (outgoing, subscriptions) = (outgoing.clone(), Arc::clone(&subscriptions));
                    tokio::spawn(async move {
                        tokio::select! {
                            () = answer(&door, tier, &body, &outgoing, &subscriptions) => {}
                            // Nobody is there to read it.
                            () = outgoing.closed() => {}
                        }
                        drop(place);
                    });
                    Ok(())
                }
            };
            if sent.is_err() {
                return;
            }
        }
    };
    // When one of them ends, the other has nothing more to do.
    tokio::select! {
        () = reading => {}
        () = write(sender, queue) => {}
    }
}

/// Carries one message out and passes its answer on, then the news it asked for.
async fn answer(
    door: &Door,
    tier: Tier,
    body: &[u8],
    outgoing: &mpsc::Sender<String>,
    subscriptions: &Arc<Semaphore>,
) {
    let carrier = Carrier::WebSocket(subscriptions);
    let Some(answer) = rpc::answer(&door.methods, tier, body, carrier).await else {
        return;
    };
    if outgoing.send(answer.text).await.is_err() {
        return;
    }
    let Some((mut news, _place)) = answer.news else {
        return;
    };
    while let Some(message) = news.recv().await {
        if outgoing
            .send(String::from(Box::<str>::from(message)))
            .await
            .is_err()
        {
            return;
        }
    }
}

async fn write(mut sender: soketto::Sender<Stream>, mut queue: mpsc::Receiver<String>) {
    while let Some(text) = queue.recv().await {
        let sent = async {
            sender.send_text_owned(text).await?;
            sender.flush().await
        };
        if let Err(error) = sent.await {
            tracing::debug!(%error, "a peer's WebSocket broke");
            return;
        }
    }
}
