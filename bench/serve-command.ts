import { fileURLToPath } from 'node:url'

/** The command that runs one of bench/servers.ts in a process of its own. */
export function serveCommand(name: string, port: number, argument = ''): readonly string[] {
  const run = fileURLToPath(new URL('./run.ts', import.meta.url))
  return [process.execPath, '--import', 'tsx', run, 'serve', name, String(port), argument]
}
