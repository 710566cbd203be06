import type { Action, Plan } from './plan.ts'
import { runPlan } from './run-plan.ts'

/** A run costs some tenths of a second. */
const maxRuns = 400

/** Leaves out actions as long as a read is still too old: first many at once, at last each alone. */
export const shrink = async (plan: Plan): Promise<Plan> => {
  let runs = 0
  const fails = async (actions: readonly Action[], changes: Partial<Plan> = {}): Promise<boolean> => {
    runs += 1
    const outcome = await runPlan({ ...plan, ...changes, actions })
    return outcome.violation !== undefined
  }
  let kept = plan.actions
  // Nothing after the violation matters.
  for (let share = kept.length; share >= 1 && runs < maxRuns; share = Math.floor(share / 2)) {
    for (let at = kept.length; at > 0 && runs < maxRuns; at -= share) {
      const without = [...kept.slice(0, Math.max(0, at - share)), ...kept.slice(at)]
      if (without.length < kept.length && (await fails(without))) kept = without
    }
  }
  const calm = { some: 0, someMs: 0, long: 0, longMs: 0 }
  const isCalm = await fails(kept, { roughness: calm })
  return { ...plan, actions: kept, ...(isCalm ? { roughness: calm } : {}) }
}

/** An action in one line. */
export const told = ({ at, does, ...more }: Action): string =>
  `${at.toFixed(1).padStart(8)} ${does} ${JSON.stringify(more)}`
