//! Which of its controllers a hub runs: on a Kubernetes where something else does part of the work, that part is switched off.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// A part of the hub's work that can be left to something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// Clusters: acceptance, access, availability, certificates, removal.
    Cluster,
    /// Cluster sets and their bindings.
    ClusterSet,
    /// Placements and their decisions.
    Placement,
    /// Add-ons: where they are installed, and what they run.
    AddOn,
    /// Works: sets of them on the clusters of placements, and those that have done what they were for.
    Work,
    /// Upgrades of clusters.
    Upgrade,
}

impl Area {
    const ALL: [Self; 6] = [Self::Cluster, Self::ClusterSet, Self::Placement, Self::AddOn, Self::Work, Self::Upgrade];

    fn name(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::ClusterSet => "clusterset",
            Self::Placement => "placement",
            Self::AddOn => "addon",
            Self::Work => "work",
            Self::Upgrade => "upgrade",
        }
    }
}

/// The parts of the work that a hub does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers(BTreeSet<Area>);

impl Controllers {
    /// Whether the hub does this.
    #[must_use]
    pub fn runs(&self, area: Area) -> bool {
        self.0.contains(&area)
    }
}

impl Default for Controllers {
    /// All of them.
    fn default() -> Self {
        Self(Area::ALL.into())
    }
}

/// Why a list of controllers makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotControllers {
    /// There is none of that name.
    #[error("there is no controller {0}: there are {names}, and * for all of them", names = Area::ALL.map(Area::name).join(", "))]
    Unknown(String),
    /// None is left.
    #[error("no controller is left to run: to leave some out begin with *, as in *,-placement")]
    None,
}

impl FromStr for Controllers {
    type Err = NotControllers;

    fn from_str(list: &str) -> Result<Self, NotControllers> {
        let mut areas = BTreeSet::new();
        for item in list.split(',').map(str::trim) {
            if item == "*" {
                areas.extend(Area::ALL);
                continue;
            }
            let name = item.strip_prefix('-').unwrap_or(item);
            let area = Area::ALL.into_iter().find(|area| area.name() == name);
            let area = area.ok_or_else(|| NotControllers::Unknown(name.to_owned()))?;
            if item.starts_with('-') {
                areas.remove(&area);
            } else {
                areas.insert(area);
            }
        }
        if areas.is_empty() { Err(NotControllers::None) } else { Ok(Self(areas)) }
    }
}

impl fmt::Display for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|area| area.name()).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> Result<String, NotControllers> {
        list.parse::<Controllers>().map(|controllers| controllers.to_string())
    }

    #[test]
    fn some_can_be_chosen_or_left_out() {
        assert_eq!(read("*"), Ok("cluster,clusterset,placement,addon,work,upgrade".to_owned()));
        assert_eq!(read("*,-placement"), Ok("cluster,clusterset,addon,work,upgrade".to_owned()));
        assert_eq!(read("placement, clusterset"), Ok("clusterset,placement".to_owned()));
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused() {
        assert_eq!(read("*,-addons"), Err(NotControllers::Unknown("addons".to_owned())));
        assert_eq!(read(""), Err(NotControllers::Unknown(String::new())));
        assert_eq!(read("-placement"), Err(NotControllers::None));
    }
}
