//! The stability centre of dual smoothing (Wentges, 1997; Pessoa and others, 2018): the best values
//! that were proved so far, towards which the search for others is drawn. Dual values of a
//! restricted master swing from round to round; those in between price better.
//!
//! Invariant: what they say never falls.

/// Values of classes at which nothing was found to be worth more than it costs.
#[derive(Clone, Debug)]
pub(crate) struct Centre {
    values: Vec<f64>,
    /// What all classes must cost at these values.
    proved: f64,
}

impl Centre {
    /// Values that need no proof, and what they say.
    pub(crate) fn new(values: Vec<f64>, proved: f64) -> Self {
        Self { values, proved }
    }

    /// Values between others and these, which weigh `weight` of one.
    pub(crate) fn between(&self, others: &[f64], weight: f64) -> Vec<f64> {
        let both = others.iter().zip(&self.values);
        both.map(|(other, centre)| centre * weight + other * (1.0 - weight)).collect()
    }

    /// Takes the values, lowered by the most that anything is worth for its price, when they say
    /// more; `worth` is what all classes are worth at them.
    pub(crate) fn offer(&mut self, values: &[f64], worth: f64, most: f64) {
        let proved = worth / most.max(1e-12);
        if proved > self.proved {
            self.proved = proved;
            self.values = values.iter().map(|value| value / most).collect();
        }
    }

    /// What all classes must cost.
    pub(crate) fn proved(&self) -> f64 {
        self.proved
    }

    /// The values.
    pub(crate) fn into_values(self) -> Vec<f64> {
        self.values
    }
}
