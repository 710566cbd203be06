import { fileURLToPath } from 'node:url'

/** The command that runs one of bench/servers.ts in a separate process. */
export function serveCommand(name: string, port: number, argument = ''): readonly string[] {
  const run = fileURLToPath(new URL('./run.ts', import.meta.url))
  // The origin is not a server to measure.
  const profiled = name === 'origin' ? [] : profiling()
  return [process.execPath, ...profiled, '--import', 'tsx', run, 'serve', name, String(port), argument]
}

/** BENCH_PROFILE=FOLDER: V8 writes there where the time went. */
export function profiling(): readonly string[] {
  const folder = process.env['BENCH_PROFILE']
  return folder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${folder}`]
}
