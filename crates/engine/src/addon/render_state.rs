//! How the works of an add-on on one cluster come about.

use std::sync::Arc;

use super::progress::Maker;
use crate::template::{Blueprint, Expected};

/// How the works of an add-on on one cluster come about.
#[derive(Clone, Debug)]
pub enum RenderState {
    /// The add-on's own manager creates them.
    ByManager,
    /// The hub has rendered them, but would not render them like that now: it renders in another way
    /// than the Drover that has rendered them, or has lost what they were rendered from. They stay.
    Former(Option<Arc<Blueprint>>),
    /// The hub renders them, and has not done so yet.
    Pending(Arc<Blueprint>),
    /// They cannot be rendered: the template cannot be parsed.
    Unreadable(String),
    /// They were rendered, or cannot be.
    Rendered(Arc<Blueprint>, Arc<RenderedWorks>),
}

/// Works that were rendered, without what they apply.
#[derive(Debug)]
pub struct RenderedWorks {
    /// The namespace that the agent runs in; not known if nothing could be rendered.
    pub namespace: Option<String>,
    /// The works, or why there are none.
    pub works: Result<Vec<Expected>, String>,
}

impl RenderState {
    /// Who creates the works.
    #[must_use]
    pub fn maker(&self) -> Maker<'_> {
        match self {
            Self::ByManager => Maker::Manager,
            Self::Former(_) => Maker::Former,
            Self::Pending(_) => Maker::NotYet,
            Self::Unreadable(why) => Maker::Nobody(why),
            Self::Rendered(_, rendered) => match &rendered.works {
                Ok(works) => Maker::Template(works),
                Err(why) => Maker::Nobody(why),
            },
        }
    }

    /// The template, if there is one that can be parsed.
    #[must_use]
    pub fn blueprint(&self) -> Option<&Arc<Blueprint>> {
        match self {
            Self::ByManager | Self::Unreadable(_) => None,
            Self::Former(blueprint) => blueprint.as_ref(),
            Self::Pending(blueprint) | Self::Rendered(blueprint, _) => Some(blueprint),
        }
    }

    /// The namespace that the agent runs in, if it is known.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Rendered(_, rendered) => rendered.namespace.as_deref(),
            _ => None,
        }
    }
}
