import type { Config } from '../../config/config.ts'
import type { CliPorts } from '../cli-ports.ts'

/** The first read may find an index that is not read yet. */
const maxReads = 4
const timeoutMs = 20_000

const causeOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

type Read = { readonly status: number; readonly cache: string }

const readOnce = async (url: string): Promise<Read> => {
  const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) })
  await response.arrayBuffer()
  return { status: response.status, cache: response.headers.get('cache-status') ?? '' }
}

const isHit = ({ cache }: Read): boolean => /; ?hit\b/.test(cache)

/** Reads a path through a gateway of its own with this configuration until the cache answers, and says so in a line. */
export const firstHit = async (
  { startTrial }: Pick<CliPorts, 'startTrial'>,
  config: Config,
  path: string,
): Promise<string> => {
  try {
    const gateway = await startTrial(config)
    try {
      let last: Read = { status: 0, cache: '' }
      for (let reads = 1; reads <= maxReads; reads += 1) {
        last = await readOnce(gateway.publicAddress + path)
        if (isHit(last) && reads > 1)
          return `GET ${path}: miss, then hit. ${Math.ceil(performance.now() / 1000)} s.`
      }
      return `GET ${path}: ${last.status}, not stored (${last.cache}); trellis explain GET ${path} says why.`
    } finally {
      await gateway.close()
    }
  } catch (error) {
    return `GET ${path} was not tried: ${causeOf(error)}.`
  }
}
