import type { CliPorts, End } from '../cli-ports.ts'

/** Runs what a command does. A test of the documents only reads their command lines. */
export type Act = (work: () => Promise<End>) => Promise<void>

/** What the commands of a program are made with. */
export type Parts = { readonly ports: CliPorts; readonly act: Act }
