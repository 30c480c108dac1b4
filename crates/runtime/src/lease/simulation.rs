//! Candidates on a network and on clocks that go wrong, with time and chance under control: never two that may act.

use std::{collections::VecDeque, time::Duration};

use k8s_openapi::{
    api::coordination::v1::Lease,
    jiff::{SignedDuration, Timestamp},
};

use super::{
    DURATION, Leadership, PATIENCE,
    candidate::{Candidate, Turn},
};
use crate::clock::{Moment, Tick};

/// How long a lease can be remembered.
const MEMORY: i64 = 20_000;

/// How wrong the clock of a machine can be that wakes: less than the last third of a lease. By more, and no clock knows how old
/// the lease is.
const ERROR: i64 = 3_300;

/// How much real time passes between two looks at everything.
const TICK: i64 = 100;

/// Chance that can be had again: a linear congruential generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % u64::try_from(bound).unwrap()).unwrap()
    }

    fn either_way(&mut self, bound: i64) -> i64 {
        self.below(2 * bound) - bound
    }

    fn once_in(&mut self, times: i64) -> bool {
        self.below(times) == 0
    }
}

/// The rules that leaders keep; all but the first are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    Ours,
    /// The last third of the lease is used too.
    ActToTheEnd,
    /// A renewal counts from when its answer arrived.
    CountFromTheAnswer,
    /// There is no clock but the one that can be set.
    WallClockAlone,
    /// There is no clock but the one that stands still with the machine.
    TicksAlone,
}

/// What the API server does with the lease.
#[derive(Default)]
struct Server {
    lease: Option<Lease>,
    version: u32,
}

impl Server {
    fn write(&mut self, lease: &Lease) -> Option<Lease> {
        let current = self.lease.as_ref().and_then(|lease| lease.metadata.resource_version.as_ref());
        if current != lease.metadata.resource_version.as_ref() {
            return None;
        }
        self.version += 1;
        let mut lease = lease.clone();
        lease.metadata.resource_version = Some(self.version.to_string());
        self.lease.insert(lease).clone().into()
    }
}

/// What a candidate is told.
enum Answer {
    Saw(Option<Lease>),
    Wrote(Option<Lease>),
}

/// A request on its way. One that was given up may still arrive.
struct Request {
    number: u64,
    from: usize,
    write: Option<Lease>,
    arrives: i64,
    /// None if the answer is lost.
    returns: Option<i64>,
}

struct Node {
    candidate: Candidate,
    published: Leadership,
    /// What its wall clock is ahead of the real time.
    ahead: i64,
    /// For how long it was suspended, all in all.
    suspended: i64,
    /// When its wall clock was last set.
    set: i64,
    /// When it last woke from being suspended.
    woke: i64,
    frozen_until: i64,
    cut_off_until: i64,
    /// What it waits for: the request's number, and when it was sent by its own clocks.
    asked: Option<(u64, Moment)>,
    answers: VecDeque<(u64, i64, Answer)>,
}

impl Node {
    fn new(number: i64) -> Self {
        Self {
            candidate: Candidate::new(&format!("hub-{number}"), tick(0)),
            published: Leadership::Standby,
            // Every clock is hours away from every other.
            ahead: number * 12_345_678,
            suspended: 0,
            set: -MEMORY,
            woke: -MEMORY,
            frozen_until: 0,
            cut_off_until: 0,
            asked: None,
            answers: VecDeque::new(),
        }
    }

    fn now(&self, real: i64, rules: Rules) -> Moment {
        let (wall, ticks) = (real + self.ahead, real - self.suspended);
        match rules {
            Rules::WallClockAlone => Moment { time: time(wall), tick: tick(wall) },
            Rules::TicksAlone => Moment { time: time(ticks), tick: tick(ticks) },
            _ => Moment { time: time(wall), tick: tick(ticks) },
        }
    }

    fn set_clock(&mut self, real: i64, chance: &mut Chance) {
        if self.woke + MEMORY <= real {
            let furthest = if chance.once_in(2) { 3_600_000 } else { 12_000 };
            self.ahead += chance.either_way(furthest);
            self.set = real;
        }
    }

    fn suspend(&mut self, real: i64, chance: &mut Chance) {
        if self.set.max(self.woke) + MEMORY <= real {
            let duration = chance.below(30_000);
            self.suspended += duration;
            self.ahead += chance.either_way(ERROR);
            self.frozen_until = real + duration;
            self.woke = self.frozen_until;
        }
    }

    fn acts(&self, real: i64, rules: Rules) -> bool {
        let now = self.now(real, rules);
        real >= self.frozen_until
            && match self.published {
                Leadership::Leader { renewed, .. } if rules == Rules::ActToTheEnd => now.is_within(DURATION, renewed),
                leadership => leadership.may_act(now),
            }
    }

    /// Takes an answer that has arrived, or gives up waiting for it.
    fn listen(&mut self, real: i64, rules: Rules) {
        let Some((number, sent)) = self.asked else { return };
        let now = self.now(real, rules);
        let heard = self.answers.iter().position(|(answered, returns, _)| *answered == number && *returns <= real);
        match heard.and_then(|index| self.answers.remove(index)) {
            Some((_, _, Answer::Saw(lease))) => self.candidate.saw(lease, now.tick),
            Some((_, _, Answer::Wrote(Some(lease)))) => {
                let counts_from = if rules == Rules::CountFromTheAnswer { now } else { sent };
                self.candidate.confirmed(lease, counts_from, now.tick);
            }
            Some((_, _, Answer::Wrote(None))) => self.candidate.refused(),
            None if now.tick.since(sent.tick) < PATIENCE => return,
            None => self.candidate.failed(now.tick),
        }
        self.asked = None;
    }
}

struct World {
    real: i64,
    rules: Rules,
    chance: Chance,
    server: Server,
    nodes: Vec<Node>,
    requests: Vec<Request>,
    sent: u64,
    trouble: bool,
}

impl World {
    fn new(seed: u64, candidates: i64, rules: Rules) -> Self {
        Self {
            real: 0,
            rules,
            chance: Chance(seed),
            server: Server::default(),
            nodes: (0..candidates).map(Node::new).collect(),
            requests: Vec::new(),
            sent: 0,
            trouble: true,
        }
    }

    /// Lets time pass, and says how many candidates acted at once at most.
    fn run(&mut self, duration: i64) -> usize {
        let end = self.real + duration;
        let mut most = 0;
        while self.real < end {
            self.real += TICK;
            if self.trouble {
                self.make_trouble();
            }
            self.deliver();
            // Who acts asks before the candidate has had its turn, as after a freeze, and after.
            most = most.max(self.acting());
            for index in 0..self.nodes.len() {
                self.turn(index);
            }
            most = most.max(self.acting());
        }
        most
    }

    fn acting(&self) -> usize {
        self.nodes.iter().filter(|node| node.acts(self.real, self.rules)).count()
    }

    fn make_trouble(&mut self) {
        let index = usize::try_from(self.chance.below(i64::try_from(self.nodes.len()).unwrap())).unwrap();
        let node = &mut self.nodes[index];
        if self.real < node.frozen_until {
            return;
        }
        if self.chance.once_in(400) {
            node.frozen_until = self.real + self.chance.below(30_000);
        }
        if self.chance.once_in(400) {
            node.cut_off_until = self.real + self.chance.below(30_000);
        }
        if self.chance.once_in(50) {
            node.set_clock(self.real, &mut self.chance);
        }
        if self.chance.once_in(50) {
            node.suspend(self.real, &mut self.chance);
        }
    }

    fn deliver(&mut self) {
        let (arrived, under_way) =
            std::mem::take(&mut self.requests).into_iter().partition(|request| request.arrives <= self.real);
        self.requests = under_way;
        let mut arrived: Vec<Request> = arrived;
        arrived.sort_by_key(|request| request.arrives);
        for request in arrived {
            let answer = match &request.write {
                None => Answer::Saw(self.server.lease.clone()),
                Some(lease) => Answer::Wrote(self.server.write(lease)),
            };
            if let Some(returns) = request.returns {
                self.nodes[request.from].answers.push_back((request.number, returns, answer));
            }
        }
    }

    fn turn(&mut self, index: usize) {
        let (real, rules) = (self.real, self.rules);
        let node = &mut self.nodes[index];
        if real < node.frozen_until {
            return;
        }
        node.listen(real, rules);
        let now = node.now(real, rules);
        if node.asked.is_none() {
            match node.candidate.turn(now) {
                Turn::Look => self.send(index, None),
                Turn::Write(lease) => self.send(index, Some(*lease)),
                Turn::Rest { .. } => {}
            }
        }
        let node = &mut self.nodes[index];
        node.published = node.candidate.leadership(now);
    }

    fn send(&mut self, from: usize, write: Option<Lease>) {
        self.sent += 1;
        let node = &mut self.nodes[from];
        node.asked = Some((self.sent, node.now(self.real, self.rules)));
        if self.real < node.cut_off_until {
            return;
        }
        let slow = self.trouble && self.chance.once_in(10);
        let delay = if slow { 12_000 } else { 200 };
        let arrives = self.real + self.chance.below(delay);
        let is_lost = self.trouble && self.chance.once_in(20);
        let returns = (!is_lost).then(|| arrives + self.chance.below(delay));
        self.requests.push(Request { number: self.sent, from, write, arrives, returns });
    }
}

fn time(millis: i64) -> Timestamp {
    Timestamp::constant(1_800_000_000, 0) + SignedDuration::from_millis(millis)
}

/// A tick of a clock that was started long before the first candidate.
fn tick(millis: i64) -> Tick {
    let started = 1_000_000_000_000;
    Tick::default().after(Duration::from_millis(u64::try_from(started + millis).unwrap()))
}

/// Whether two candidates ever act at once, in half an hour for each of the seeds.
fn two_act(rules: Rules) -> bool {
    (0..16).any(|seed| World::new(seed, 2 + i64::try_from(seed % 2).unwrap(), rules).run(1_800_000) > 1)
}

#[test]
fn never_do_two_act_whatever_freezes_gets_lost_or_jumps() {
    assert!(!two_act(Rules::Ours));
}

#[test]
fn the_last_third_is_needed() {
    assert!(two_act(Rules::ActToTheEnd));
}

#[test]
fn counting_from_the_answer_lets_two_act() {
    assert!(two_act(Rules::CountFromTheAnswer));
}

#[test]
fn a_clock_that_can_be_set_is_not_enough() {
    assert!(two_act(Rules::WallClockAlone));
}

#[test]
fn a_clock_that_stands_still_with_its_machine_is_not_enough() {
    assert!(two_act(Rules::TicksAlone));
}

#[test]
fn somebody_acts_within_fifteen_seconds_after_the_trouble_is_over() {
    for seed in 0..40 {
        let mut world = World::new(seed, 3, Rules::Ours);
        world.run(600_000);
        world.trouble = false;
        for node in &mut world.nodes {
            (node.frozen_until, node.cut_off_until) = (0, 0);
        }
        world.requests.clear();
        world.run(15_000);
        for _ in 0..200 {
            world.run(TICK);
            assert_eq!(world.acting(), 1, "seed {seed}");
        }
    }
}

#[test]
fn a_leader_that_dies_is_replaced_within_fifteen_seconds() {
    for seed in 0..40 {
        let mut world = World::new(seed, 2, Rules::Ours);
        world.trouble = false;
        world.run(20_000 + i64::try_from(seed).unwrap() * 170);
        let leader = world.nodes.iter().position(|node| node.acts(world.real, Rules::Ours)).expect("somebody leads");
        world.nodes[leader].frozen_until = i64::MAX;
        world.run(15_000);
        assert_eq!(world.acting(), 1, "seed {seed}");
    }
}
