import type { RunningProcess } from './processes.ts'

/** The log lines of a gateway with one message, oldest first. */
export const logLinesOf = (
  program: Pick<RunningProcess, 'output'>,
  message: string,
): readonly Readonly<Record<string, unknown>>[] =>
  program
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === message)
