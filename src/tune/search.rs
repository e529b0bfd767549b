//! The fastest way to run a kernel: which are measured, how often, and what is clearly faster.

/// What a search asks of what it searches.
pub(super) trait Bench {
    /// A way to run what is measured.
    type Way: Copy + PartialEq;

    /// Ways beside this one, in a fixed order.
    fn neighbours(&mut self, way: Self::Way) -> Vec<Self::Way>;

    /// Ways that are beside no other one: those are tried last.
    fn others(&mut self) -> Vec<Self::Way>;

    /// Makes ways ready to be measured, and gives those that can be.
    fn prepare(&mut self, ways: &[Self::Way]) -> Vec<Self::Way>;

    /// The seconds that one takes that is ready; `None` if it fails.
    fn seconds(&mut self, way: Self::Way) -> Option<f64>;

    /// Whether it has taken as long as it may.
    fn is_over(&self) -> bool;
}

/// How often the candidates of a step are measured, one after the other in turn.
const ROUNDS: usize = 5;
/// After so many rounds, candidates drop out that never came near the fastest.
const FIRST_ROUNDS: usize = 2;
const HOPELESS: f64 = 1.25;
/// What a step must gain to be taken; less is noise, and would lead astray.
const STEP: f64 = 1.02;
/// The end is a duel with the default: so many pairs, of which so many are to be won, and by so much on the median and at best.
/// Where others use the processors too, one of the two may be disturbed all the time, but hardly each time.
const PAIRS: usize = 11;
const WON: usize = 9;
const CLEARLY: f64 = 1.05;

/// What was found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Found<Way> {
    /// The default, if nothing is clearly faster.
    pub(super) way: Way,
    pub(super) seconds: f64,
    pub(super) default_seconds: f64,
    /// How many were measured, the default among them.
    pub(super) tried: usize,
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Goes from the default to the fastest of its neighbours, and on from there; then it tries what has no neighbours. `None` if the
/// default itself cannot be measured, or there was no time for it.
pub(super) fn search<B: Bench>(bench: &mut B, default: B::Way) -> Option<Found<B::Way>> {
    let is_ready = bench.prepare(&[default]).contains(&default);
    if !is_ready || bench.is_over() {
        return None;
    }
    let mut best = default;
    let mut seen = vec![default];
    let mut tried = 1;
    loop {
        let mut new = bench.neighbours(best);
        new.retain(|way| !seen.contains(way));
        seen.extend(&new);
        if new.is_empty() || bench.is_over() {
            break;
        }
        let ready = bench.prepare(&new);
        tried += ready.len();
        match faster(bench, best, &ready) {
            Some(way) => best = way,
            None => break,
        }
    }
    let others = if bench.is_over() { Vec::new() } else { bench.others() };
    if !others.is_empty() {
        let ready = bench.prepare(&others);
        tried += ready.len();
        best = faster(bench, best, &ready).unwrap_or(best);
    }
    let (seconds, default_seconds) = duel(bench, default, best)?;
    match seconds {
        Some(seconds) => Some(Found { way: best, seconds, default_seconds, tried }),
        None => Some(Found { way: default, seconds: default_seconds, default_seconds, tried }),
    }
}

/// The fastest of some ways, if it is faster than the best so far.
fn faster<B: Bench>(bench: &mut B, best: B::Way, others: &[B::Way]) -> Option<B::Way> {
    let mut contenders: Vec<(B::Way, Vec<f64>)> =
        [best].iter().chain(others).map(|&way| (way, Vec::new())).collect();
    for round in 0..ROUNDS {
        // Whoever begins finds other caches than those after it.
        let count = contenders.len();
        for place in 0..count {
            let (way, times) = &mut contenders[(round + place) % count];
            times.push(bench.seconds(*way).unwrap_or(f64::INFINITY));
        }
        if round + 1 >= FIRST_ROUNDS {
            let fastest = contenders.iter().map(|(_, times)| least(times)).fold(f64::INFINITY, f64::min);
            contenders.retain(|(way, times)| *way == best || least(times) <= fastest * HOPELESS);
            if bench.is_over() {
                break;
            }
        }
    }
    let (first, rest) = contenders.split_first()?;
    let winner = rest.iter().min_by(|a, b| least(&a.1).total_cmp(&least(&b.1)))?;
    (least(&winner.1) * STEP < least(&first.1)).then_some(winner.0)
}

/// The seconds of the best, if it is clearly faster than the default, and those of the default. `None` if neither can be
/// measured.
fn duel<B: Bench>(bench: &mut B, default: B::Way, best: B::Way) -> Option<(Option<f64>, f64)> {
    let (mut of_default, mut of_best) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let is_turned = pair % 2 == 1;
        let first = bench.seconds(if is_turned { best } else { default })?;
        if best == default {
            of_default.push(first);
            continue;
        }
        let second = bench.seconds(if is_turned { default } else { best })?;
        of_default.push(if is_turned { second } else { first });
        of_best.push(if is_turned { first } else { second });
    }
    let (default_seconds, seconds) = (least(&of_default), least(&of_best));
    let won = of_default.iter().zip(&of_best).filter(|(default, best)| best < default).count();
    let is_faster = best != default
        && won >= WON
        && seconds * CLEARLY <= default_seconds
        && median(&of_best) * CLEARLY <= median(&of_default);
    Some((is_faster.then_some(seconds), default_seconds))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lazuli_codegen::schedule::Schedule;

    use super::*;

    /// Schedules on a line, of costs that somebody says.
    struct Line<F> {
        cost: F,
        calls: BTreeMap<u64, usize>,
        most_calls: usize,
        /// Off the line.
        others: Vec<u64>,
    }

    fn at(place: u64) -> Schedule {
        format!("pointwise(elements_per_block={place})").parse().unwrap()
    }

    fn place(schedule: Schedule) -> u64 {
        match schedule {
            Schedule::Pointwise(pointwise) => pointwise.elements_per_block,
            _ => 0,
        }
    }

    impl<F: FnMut(u64, usize) -> Option<f64>> Bench for Line<F> {
        type Way = Schedule;

        fn others(&mut self) -> Vec<Schedule> {
            self.others.iter().map(|&place| at(place)).collect()
        }

        fn neighbours(&mut self, schedule: Schedule) -> Vec<Schedule> {
            let place = place(schedule);
            [place - 1, place + 1].into_iter().filter(|place| (1..=64).contains(place)).map(at).collect()
        }

        fn prepare(&mut self, schedules: &[Schedule]) -> Vec<Schedule> {
            // One that does not compile.
            schedules.iter().copied().filter(|&schedule| place(schedule) != 33).collect()
        }

        fn seconds(&mut self, schedule: Schedule) -> Option<f64> {
            let place = place(schedule);
            let call = self.calls.entry(place).or_default();
            *call += 1;
            (self.cost)(place, *call)
        }

        fn is_over(&self) -> bool {
            self.calls.values().sum::<usize>() >= self.most_calls
        }
    }

    fn found(default: u64, cost: impl FnMut(u64, usize) -> Option<f64>) -> Option<Found<Schedule>> {
        search(
            &mut Line { cost, calls: BTreeMap::new(), most_calls: usize::MAX, others: Vec::new() },
            at(default),
        )
    }

    fn valley(place: u64) -> f64 {
        (10 + place.abs_diff(20)) as f64 * 1e-4
    }

    #[test]
    fn it_goes_down_to_the_lowest() {
        let found = found(30, |place, _| Some(valley(place))).unwrap();
        assert_eq!((found.way, found.seconds, found.default_seconds), (at(20), 1e-3, 2e-3));
        // Both sides of 30, then one more at each step, and the one behind the lowest.
        assert_eq!(found.tried, 13);
    }

    #[test]
    fn what_does_not_compile_or_fails_is_left_out() {
        assert_eq!(found(34, |place, _| Some(valley(place))).unwrap().way, at(34));
        let failing = |place: u64, _| (place != 25).then(|| valley(place));
        assert_eq!(found(30, failing).unwrap().way, at(26));
        assert_eq!(found(33, |place, _| Some(valley(place))), None);
        assert_eq!(found(30, |place, _| (place != 30).then_some(1.0)), None);
    }

    #[test]
    fn the_default_stays_unless_something_is_clearly_faster() {
        let slightly = found(21, |place, _| Some(if place == 20 { 0.97 } else { 1.0 })).unwrap();
        assert_eq!((slightly.way, slightly.seconds, slightly.default_seconds), (at(21), 1.0, 1.0));
        // The default is disturbed most of the time.
        let disturbed = found(21, |place, call| Some(if place == 21 && call % 5 != 0 { 9.0 } else { 1.0 }));
        assert_eq!(disturbed.unwrap().way, at(21));
        // Fast while steps are measured, and not in the end.
        let lucky = found(21, |place, call| Some(if place == 20 && call <= ROUNDS { 0.5 } else { 1.0 }));
        assert_eq!(lucky.unwrap().way, at(21));
        // Faster on the median, but not reliably.
        let fickle = found(21, |place, call| {
            Some(match (place, call > ROUNDS && call % 3 == 0) {
                (20, false) => 0.8,
                (20, true) => 1.5,
                _ => 1.0,
            })
        });
        assert_eq!(fickle.unwrap().way, at(21));
    }

    #[test]
    fn what_is_off_the_line_is_tried_last() {
        let search = |of_other: f64| {
            let cost = move |place, _| Some(if place == 100 { of_other } else { valley(place) });
            let mut line =
                Line { cost, calls: BTreeMap::new(), most_calls: usize::MAX, others: vec![100, 33] };
            search(&mut line, at(30)).unwrap()
        };
        let found = search(5e-4);
        assert_eq!((found.way, found.seconds, found.default_seconds, found.tried), (at(100), 5e-4, 2e-3, 14));
        assert_eq!(search(1.5e-3).way, at(20), "faster than the default is not enough");
    }

    #[test]
    fn single_slow_rounds_change_nothing() {
        let found = found(30, |place, call| Some(valley(place) * if call % 7 == 3 { 50.0 } else { 1.0 }));
        assert_eq!(found.unwrap().way, at(20));
    }

    #[test]
    fn the_limit_ends_it() {
        let mut line = Line {
            cost: |place, _| Some(valley(place)),
            calls: BTreeMap::new(),
            most_calls: 20,
            others: vec![100],
        };
        let found = search(&mut line, at(30)).unwrap();
        assert_eq!(found.way, at(28), "what was found until then counts");
        line.calls.insert(1, 100);
        assert_eq!(search(&mut line, at(30)), None);
    }
}
