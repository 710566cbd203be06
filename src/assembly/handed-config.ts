import { type ConfigResult, configOf } from '../config/load.ts'
import type { ReloadOutcome } from '../lifecycle/reload-outcome.ts'
import type { Question } from '../workers/messages.ts'
import type { Ask, SupervisorOptions } from '../workers/supervisor-options.ts'
import { reloadOutcomeOf } from './worker-questions.ts'

/** What the parent has read, as its workers get it: plain data. */
export type HandedConfig =
  | { readonly kind: 'filled'; readonly filled: unknown }
  | Extract<ConfigResult, { kind: 'faults' }>

const asHanded = (result: ConfigResult): HandedConfig =>
  result.kind === 'ok' ? { kind: 'filled', filled: result.filled } : result

/** What it means: the same for every worker, whatever its file says by now. */
export const fromHanded = (handed: HandedConfig): ConfigResult =>
  handed.kind === 'filled' ? configOf(handed.filled) : handed

/** The configuration that all workers have, also those that are started later. */
export type WorkersConfig = Pick<SupervisorOptions, 'through' | 'outdated'> & {
  readonly inForce: HandedConfig
}

const readingFailed = (cause: unknown): readonly ReloadOutcome[] => [{ kind: 'failed', cause }]

/** Keeps what was read at the start, or by the last reload that the workers took over: files are read here alone. */
export const createWorkersConfig = (
  filled: unknown,
  readConfig: () => Promise<ConfigResult>,
): WorkersConfig => {
  let inForce: HandedConfig = { kind: 'filled', filled }
  /** Asked for, and perhaps refused in a moment. */
  let asked: HandedConfig = inForce
  let before: Promise<unknown> = Promise.resolve()

  const reload = async (question: Question, ask: Ask): Promise<readonly unknown[]> => {
    const read = asHanded(await readConfig())
    if (read.kind === 'filled') asked = read
    // One that takes long, since it reads a site's index, has taken it over all the same.
    const answers = await ask({ ...question, content: read }, 'until-all')
    const { kind } = reloadOutcomeOf(answers)
    if (kind === 'applied' || kind === 'unchanged') inForce = asked
    asked = inForce
    return answers
  }
  return {
    get inForce() {
      return inForce
    },
    through: (question, ask) => {
      if (question.topic !== 'reload') return ask(question, 'brief')
      const answers = before.then(() => reload(question, ask)).catch(readingFailed)
      before = answers
      return answers
    },
    // It was told one, and started while another one was put in force.
    outdated: (told) => (told === asked ? undefined : { topic: 'reload', content: asked }),
  }
}
