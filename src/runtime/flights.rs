//! Kernels that a thread is loading: others that want the same wait for what comes of it, rather than run a compiler too.
//!
//! Who has a flight asks rayon for nothing until it is over, and waits for no other one. So whoever waits, on whatever
//! thread, waits for work that is being done.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Flights by what they are of; at any time there are few.
pub(crate) struct Flights<K, T>(Mutex<Vec<(K, Arc<Flight<T>>)>>);

/// What is to come of one.
pub(crate) struct Flight<T> {
    state: Mutex<State<T>>,
    over: Condvar,
}

enum State<T> {
    UnderWay,
    /// `None` if whoever had it gave up, or panicked.
    Over(Option<T>),
}

/// Whose a flight is.
pub(crate) enum Turn<'a, K: Copy + PartialEq, T> {
    Own(Lead<'a, K, T>),
    Others(Arc<Flight<T>>),
}

/// A flight of this thread. Dropped without an end, it is over all the same.
pub(crate) struct Lead<'a, K: Copy + PartialEq, T> {
    flights: &'a Flights<K, T>,
    key: K,
    flight: Arc<Flight<T>>,
    result: Option<T>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Copy + PartialEq, T> Flights<K, T> {
    pub(crate) const fn new() -> Flights<K, T> {
        Flights(Mutex::new(Vec::new()))
    }

    /// Begins one, if there is none.
    pub(crate) fn begin(&self, key: K) -> Turn<'_, K, T> {
        let mut flights = lock(&self.0);
        if let Some((_, flight)) = flights.iter().find(|(other, _)| *other == key) {
            return Turn::Others(flight.clone());
        }
        let flight = Arc::new(Flight { state: Mutex::new(State::UnderWay), over: Condvar::new() });
        flights.push((key, flight.clone()));
        Turn::Own(Lead { flights: self, key, flight, result: None })
    }
}

impl<T: Clone> Flight<T> {
    /// Its result, once it is over.
    pub(crate) fn wait(&self) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            match &*state {
                State::Over(result) => return result.clone(),
                State::UnderWay => {
                    state = self.over.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl<K: Copy + PartialEq, T> Lead<'_, K, T> {
    pub(crate) fn end(mut self, result: T) {
        self.result = Some(result);
    }
}

impl<K: Copy + PartialEq, T> Drop for Lead<'_, K, T> {
    fn drop(&mut self) {
        lock(&self.flights.0).retain(|(other, _)| *other != self.key);
        *lock(&self.flight.state) = State::Over(self.result.take());
        self.flight.over.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    static FLIGHTS: Flights<u8, u8> = Flights::new();

    /// What one who comes meanwhile gets of a flight that ends so.
    fn of_another(key: u8, end: impl FnOnce(Lead<'static, u8, u8>) + Send) -> Option<u8> {
        std::thread::scope(|scope| {
            let (begun, is_begun) = channel();
            let (come, has_come) = channel();
            scope.spawn(move || {
                let Turn::Own(lead) = FLIGHTS.begin(key) else { panic!("somebody else's") };
                begun.send(()).unwrap();
                has_come.recv().unwrap();
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| end(lead)));
            });
            is_begun.recv().unwrap();
            let Turn::Others(flight) = FLIGHTS.begin(key) else { panic!("a second one") };
            come.send(()).unwrap();
            flight.wait()
        })
    }

    #[test]
    fn who_comes_meanwhile_gets_what_comes_of_it() {
        assert_eq!(of_another(1, |lead| lead.end(5)), Some(5));
        assert_eq!(of_another(2, drop), None);
        let panics = |lead| {
            let _lead: Lead<'static, u8, u8> = lead;
            std::panic::resume_unwind(Box::new(()));
        };
        assert_eq!(of_another(3, panics), None);
        // What is over is nobody's.
        assert!((1..=3).all(|key| matches!(FLIGHTS.begin(key), Turn::Own(_))));
    }
}
