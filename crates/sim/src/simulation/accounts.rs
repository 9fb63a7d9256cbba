//! The accounts of execution times and delays, from which blocking is observed.

use super::Simulation;
use crate::task::{Asked, State, TaskState};
use crate::tracer::Tracer;

impl<T: Tracer> Simulation<'_, T> {
    /// Accounts for the time since the last call. In most cases no time has passed; the function is inlined for them.
    #[inline(always)]
    pub(super) fn account(&mut self, cpu: usize) {
        let elapsed = self.cpus[cpu].unaccounted(self.now);
        if elapsed > 0 {
            self.account_elapsed(cpu, elapsed);
        }
    }

    #[inline(never)]
    fn account_elapsed(&mut self, cpu: usize, elapsed: u64) {
        let here = &mut self.cpus[cpu];
        let Some(task) = here.running else { return here.account(self.now, None) };
        let state = &mut self.tasks[task];
        if matches!(state.asked, Asked::Spinning(_)) {
            state.spun += elapsed;
        }
        if state.own_cpu.index() == cpu {
            return here.account(self.now, Some(state.rank));
        }
        let mut rank = None;
        // In a cluster of several processors, `delay` counts instead.
        if self.clusters[state.own_cpu.index()] >> cpu & 1 == 0 {
            state.away += elapsed;
            // The task executes in place of a task that spins on this processor, so the time counts as spinning of that
            // one. Under most protocols no task spins, and none has to be looked for.
            if self.has_spun
                && let Some(host) = self.cpus[cpu].ready().find(|&host| self.spins_at_home(host, cpu))
            {
                self.tasks[host].spun += elapsed;
                rank = Some(self.tasks[host].rank);
            }
        }
        self.cpus[cpu].account(self.now, rank);
    }

    fn spins_at_home(&self, task: usize, cpu: usize) -> bool {
        self.tasks[task].own_cpu.index() == cpu && matches!(self.tasks[task].asked, Asked::Spinning(_))
    }

    /// Adds to the delays of jobs in clusters, and under global fixed priorities. A job in a cluster of c processors is
    /// delayed while it is among the c most urgent jobs and does not execute, or spins. Waiting jobs count among these.
    pub(super) fn delay(&mut self, elapsed: u64) {
        for task in 0..self.tasks.len() {
            let (own, base) = (self.tasks[task].own_cpu, self.system.tasks()[task].priority);
            let (state, spins) = (self.tasks[task].state, matches!(self.tasks[task].asked, Asked::Spinning(_)));
            if self.tasks[task].job.is_none() || state == State::Running && !spins {
                continue;
            }
            let is_before = |(other, state): (usize, &TaskState)| {
                let is_there = other != task && state.own_cpu == own && state.job.is_some();
                is_there && self.system.tasks()[other].priority >= base
            };
            let before = self.tasks.iter().enumerate().filter(|&it| is_before(it)).count();
            if before < self.clusters[own.index()].count_ones() as usize {
                self.aside[task].delayed += elapsed;
            }
        }
    }
}
