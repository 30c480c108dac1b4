//! The one who writes: a thread that takes all changes that wait, makes them safe with one commit, and only then shows them.

use std::sync::{
    Arc,
    mpsc::{Receiver, Sender, channel},
};

use tokio::sync::oneshot;

use super::{WriteError, batch::Batch, journal::Journal, state::Shared};

/// The most changes that are made with one commit. Those who wait for the first must not wait forever for the last.
const MOST: usize = 1024;

/// Plans changes, and tells what to answer when it is known whether they are safe.
type Request = Box<dyn FnOnce(&mut Batch<'_>) -> Answer + Send>;
type Answer = Box<dyn FnOnce(Result<(), WriteError>) + Send>;

enum Message {
    Write(Request),
    Compact(oneshot::Sender<Result<(), WriteError>>),
    Close(oneshot::Sender<()>),
}

/// Where changes are made.
#[derive(Clone)]
pub(super) enum Writer {
    /// Right away: there is no file.
    Direct,
    /// By a thread.
    Thread(Handle),
}

/// How to reach the thread. It ends when there is no handle any more.
#[derive(Clone)]
pub(super) struct Handle(Sender<Message>);

impl Writer {
    pub(super) fn start(shared: Arc<Shared>, journal: Journal) -> std::io::Result<Self> {
        let (sender, inbox) = channel();
        let thread = Thread { shared, journal };
        std::thread::Builder::new().name("store".to_owned()).spawn(move || thread.run(&inbox))?;
        Ok(Self::Thread(Handle(sender)))
    }

    /// Makes changes. What they are is decided on the newest state, and the answer comes when they are safe and visible.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        shared: &Shared,
        plan: impl FnOnce(&mut Batch<'_>) -> Result<T, WriteError> + Send + 'static,
    ) -> Result<T, WriteError> {
        match self {
            Self::Direct => write_directly(shared, plan),
            Self::Thread(thread) => {
                let (reply, answer) = oneshot::channel();
                let request: Request = Box::new(move |batch| {
                    let planned = plan(batch);
                    // Whoever asked may have gone.
                    Box::new(move |safe| drop(reply.send(safe.and(planned))))
                });
                thread.ask(Message::Write(request), answer).await?
            }
        }
    }

    pub(super) async fn compact(&self) -> Result<(), WriteError> {
        let Self::Thread(thread) = self else { return Ok(()) };
        let (reply, answer) = oneshot::channel();
        thread.ask(Message::Compact(reply), answer).await?
    }

    pub(super) async fn close(&self) {
        let Self::Thread(thread) = self else { return };
        let (reply, answer) = oneshot::channel();
        // If it can not be asked, it has ended already.
        let _ended = thread.ask(Message::Close(reply), answer).await;
    }
}

impl Handle {
    async fn ask<T>(&self, message: Message, answer: oneshot::Receiver<T>) -> Result<T, WriteError> {
        self.0.send(message).map_err(|_| WriteError::Closed)?;
        answer.await.map_err(|_| WriteError::Closed)
    }
}

fn write_directly<T>(
    shared: &Shared,
    plan: impl FnOnce(&mut Batch<'_>) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    let state = shared.write();
    let mut batch = Batch::new(&state, shared.now());
    let planned = plan(&mut batch)?;
    let changes = batch.finish();
    shared.publish(state, changes);
    Ok(planned)
}

struct Thread {
    shared: Arc<Shared>,
    journal: Journal,
}

impl Thread {
    fn run(mut self, inbox: &Receiver<Message>) {
        while let Ok(message) = inbox.recv() {
            let mut other = None;
            let mut requests = Vec::new();
            for message in std::iter::once(message).chain(inbox.try_iter()) {
                match message {
                    Message::Write(request) => requests.push(request),
                    message => other = Some(message),
                }
                if other.is_some() || requests.len() == MOST {
                    break;
                }
            }
            if !requests.is_empty() {
                self.write(requests);
            }
            match other {
                None | Some(Message::Write(_)) => {}
                Some(Message::Compact(reply)) => drop(reply.send(self.compact())),
                Some(Message::Close(reply)) => {
                    drop(self);
                    let _gone = reply.send(());
                    return;
                }
            }
        }
    }

    fn write(&mut self, requests: Vec<Request>) {
        let state = self.shared.read();
        let mut batch = Batch::new(&state, self.shared.now());
        let answers: Vec<Answer> = requests.into_iter().map(|request| request(&mut batch)).collect();
        let changes = batch.finish();
        drop(state);

        let mut safe = Ok(());
        if !changes.events.is_empty() {
            safe = self.journal.commit(&changes).map_err(|error| WriteError::not_safe(&error));
        }
        match &safe {
            Ok(()) => self.shared.publish(self.shared.write(), changes),
            Err(error) => tracing::error!(%error, "objects can not be written"),
        }
        for answer in answers {
            answer(safe.clone());
        }
    }

    fn compact(&mut self) -> Result<(), WriteError> {
        self.journal.compact().map_err(|error| WriteError::not_safe(&error))
    }
}
