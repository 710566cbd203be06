import type { CliPorts } from './cli-ports.ts'

const everyMs = 2_000

/** Says every few seconds what takes so long: a large document takes ten, and silence looks like a fault. */
export const withProgress = async <Value>(
  { stderr }: Pick<CliPorts, 'stderr'>,
  what: string,
  work: () => Promise<Value>,
): Promise<Value> => {
  const began = performance.now()
  const timer = setInterval(() => {
    stderr.write(`trellis: ${what}, ${Math.round((performance.now() - began) / 1000)} s so far\n`)
  }, everyMs)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
