//! What a question may spend on a model: turns, calls, tokens, seconds, money.

use std::time::Duration;

use crate::fault::ModelFault;

/// What one question may spend on a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budgets {
    /// Requests to the model.
    pub turns: u32,
    /// Tool calls in all.
    pub calls: u32,
    /// Tokens sent, summed over the requests.
    pub tokens_in: u64,
    /// Tokens received, summed over the requests.
    pub tokens_out: u64,
    /// Wall time with the model and the tools.
    pub time: Duration,
    /// Money, in the currency of the price table; none where nobody set a bound.
    pub money: Option<f64>,
}

impl Default for Budgets {
    /// A question of two turns takes under 5,000 tokens in; six turns with full results take under 40,000.
    fn default() -> Self {
        Self { turns: 6, calls: 16, tokens_in: 40_000, tokens_out: 6_000, time: Duration::from_secs(90), money: None }
    }
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Sent.
    pub per_million_in: f64,
    /// Received.
    pub per_million_out: f64,
}

impl Prices {
    /// What so many tokens cost.
    pub(crate) fn of(&self, tokens_in: u64, tokens_out: u64) -> f64 {
        (tokens_in as f64 * self.per_million_in + tokens_out as f64 * self.per_million_out) / 1e6
    }
}

/// What was spent of the budgets so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Meter {
    pub(crate) turns: u32,
    pub(crate) calls: u32,
    pub(crate) tokens_in: u64,
    pub(crate) tokens_out: u64,
}

impl Meter {
    /// Tokens that the next request may send and receive.
    ///
    /// # Errors
    /// When one of the budgets leaves no room for another request.
    pub(crate) fn room(&self, budgets: &Budgets, prices: &Prices, spent: Duration) -> Result<Room, ModelFault> {
        let spent_up = |what| Err(ModelFault::Budget { what });
        if self.turns >= budgets.turns {
            return spent_up("turns");
        }
        let Some(time) = budgets.time.checked_sub(spent).filter(|left| !left.is_zero()) else {
            return spent_up("seconds");
        };
        let (mut tokens_in, mut tokens_out) =
            (budgets.tokens_in.saturating_sub(self.tokens_in), budgets.tokens_out.saturating_sub(self.tokens_out));
        if let Some(money) = budgets.money {
            let left = money - prices.of(self.tokens_in, self.tokens_out);
            // Half of what is left may be sent, so that the other half can be received.
            let buys = |price: f64| if price > 0.0 { (left.max(0.0) / 2.0 * 1e6 / price) as u64 } else { u64::MAX };
            tokens_in = tokens_in.min(buys(prices.per_million_in));
            tokens_out = tokens_out.min(buys(prices.per_million_out));
            if tokens_in == 0 || tokens_out == 0 {
                return spent_up("money");
            }
        }
        if tokens_in == 0 || tokens_out == 0 {
            return spent_up("tokens");
        }
        Ok(Room { tokens_in, tokens_out, time, is_last: self.turns + 1 >= budgets.turns })
    }
}

/// What one request may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Room {
    pub(crate) tokens_in: u64,
    pub(crate) tokens_out: u64,
    pub(crate) time: Duration,
    /// Whether no other request can follow: it has to be the answer.
    pub(crate) is_last: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_budget_ends_the_question_and_says_which_it_was() {
        let budgets = Budgets { money: Some(0.01), ..Budgets::default() };
        let prices = Prices { per_million_in: 2.0, per_million_out: 10.0 };
        let whole = Meter::default();
        let no_time = Duration::ZERO;
        assert_eq!(whole.room(&budgets, &prices, no_time).unwrap().tokens_in, 2_500);
        assert_eq!(whole.room(&budgets, &prices, no_time).unwrap().tokens_out, 500);
        let what = |meter: Meter, spent| match meter.room(&budgets, &prices, spent) {
            Err(ModelFault::Budget { what }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what(Meter { turns: 6, ..whole }, no_time), "turns");
        assert_eq!(what(whole, Duration::from_secs(90)), "seconds");
        assert_eq!(what(Meter { tokens_in: 6_000, ..whole }, no_time), "money");
        let free = Budgets { money: None, ..budgets };
        let spent = Meter { tokens_out: 6_000, ..whole };
        assert_eq!(spent.room(&free, &prices, no_time), Err(ModelFault::Budget { what: "tokens" }));
        assert!(Meter { turns: 5, ..whole }.room(&free, &prices, no_time).unwrap().is_last);
    }
}
