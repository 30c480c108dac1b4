//! Tasks that end together: those of a stage that others rely on end after those others.

use std::sync::Arc;

use kube::Client;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    controller::{Controller, QueueOf, Reconciler, Tools},
    kinds::Caches,
    lease::Leadership,
};

/// Tasks that end together.
#[derive(Debug, Default)]
pub struct Stage {
    end: CancellationToken,
    tasks: JoinSet<()>,
}

impl Stage {
    /// Does something until the stage ends.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let end = self.end.clone();
        self.tasks.spawn(async move {
            end.run_until_cancelled(task).await;
        });
    }

    /// Does something that finishes by itself when it is told that the stage ends.
    pub fn spawn_until_told<T>(&mut self, task: impl FnOnce(CancellationToken) -> T)
    where
        T: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(task(self.end.clone()));
    }

    /// Has somebody attend to the keys of a queue, on the server that `client` reaches.
    pub fn control<F: Caches, R: Reconciler<F>>(
        &mut self,
        reconciler: R,
        queue: &Arc<QueueOf<F, R>>,
        client: &Client,
        tools: &Tools<F>,
    ) {
        let controller = Controller::new(reconciler, Arc::clone(queue), client.clone(), tools.clone());
        self.spawn_until_told(|end| controller.run(end));
    }

    /// The leadership of who has nobody to agree with on who acts, as long as the stage lasts.
    pub fn alone(&mut self) -> watch::Receiver<Leadership> {
        let (alone, leadership) = watch::channel(Leadership::Alone);
        self.spawn_until_told(|end| async move {
            end.cancelled().await;
            drop(alone);
        });
        leadership
    }

    /// Ends all tasks, and waits until they have.
    pub async fn stop(mut self) {
        self.end.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stage_ends_when_all_have_finished() {
        let mut stage = Stage::default();
        let (finished, mut is_finished) = watch::channel(false);
        stage.spawn(std::future::pending());
        stage.spawn_until_told(|end| async move {
            end.cancelled().await;
            finished.send_replace(true);
        });
        let leadership = stage.alone();
        assert_eq!(*leadership.borrow(), Leadership::Alone);
        stage.stop().await;
        assert!(*is_finished.borrow_and_update());
        assert!(leadership.has_changed().is_err(), "nobody leads any more");
    }
}
