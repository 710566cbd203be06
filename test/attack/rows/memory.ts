import { type AttackRow, riseAbove, row, type Tree } from '../attack-row.ts'
import { attacker, flood } from '../clients.ts'
import type { Scene } from '../scene.ts'
import { openService } from '../services.ts'

// What clients choose and the gateway stores: variant keys, URLs, tags, callers. Each row makes it store far more than it may hold.

const cache = { maxBytes: '64MiB' }
/** Left to itself V8 lets far more garbage lie than what lives; what lives beside a cache of 64 MiB fits in here. */
const oldSpace = (mebibytes: number) => ({ NODE_OPTIONS: `--max-old-space-size=${mebibytes}` })
/** The cache, and as much garbage: 264 MiB of a gateway that has 120 when it is idle. */
const maxRiseMiB = 144

type Filling = {
  readonly name: string
  readonly description: string
  readonly max: number
  /** Of each process. */
  readonly oldSpaceMiB?: number
  readonly head: (number: number) => string
  readonly settings?: (scene: Pick<Scene, 'upstream'>) => Tree
}

const filling = ({ name, description, max, head, settings, oldSpaceMiB = 112 }: Filling): AttackRow =>
  row<Record<string, number>>({
    name,
    description,
    env: oldSpace(oldSpaceMiB),
    settings: (scene) => ({ cache, services: { open: openService(scene.upstream) }, ...settings?.(scene) }),
    // Not how long, but how much is sent decides whether it is too much.
    attack: (scene) =>
      flood(scene, AbortSignal.timeout(40_000), { connections: 24, addresses: [attacker], max, head }),
    verdict: riseAbove(maxRiseMiB * (oldSpaceMiB < 112 ? 1.5 : 1)),
  })

const long = (number: number, length: number): string => `${number}-`.padEnd(length, 'abcdefgh')

export const memoryRows: readonly AttackRow[] = [
  filling({
    name: 'long-variants',
    description: '16 variants of each of 750 targets, selected by Accept-Language with 14,000 bytes.',
    max: 12_000,
    head: (number) =>
      `GET /open/read/by-language?n=${Math.floor(number / 16)} HTTP/1.1\r\nAccept-Language: ${long(number, 14_000)}`,
  }),
  filling({
    name: 'long-variants-workers',
    description: 'The same with two workers, which hold a smaller cache each.',
    oldSpaceMiB: 96,
    max: 20_000,
    head: (number) =>
      `GET /open/read/by-language?n=${Math.floor(number / 16)} HTTP/1.1\r\nAccept-Language: ${long(number, 14_000)}`,
    settings: () => ({ workers: 2, cache: { maxBytes: '16MiB' } }),
  }),
  filling({
    name: 'long-targets',
    description: 'Stored responses of distinct URLs of 8,000 bytes.',
    max: 20_000,
    head: (number) => `GET /open/read/${long(number, 8_000)} HTTP/1.1`,
  }),
  filling({
    name: 'cache-larger-than-heap',
    description: 'As long-targets, with a cache that may be twice as large as the JavaScript heap.',
    max: 40_000,
    head: (number) => `GET /open/read/${long(number, 8_000)} HTTP/1.1`,
    settings: () => ({ cache: { maxBytes: '256MiB' } }),
  }),
  filling({
    name: 'long-targets-not-stored',
    description: 'Distinct URLs of 8,000 bytes whose answers may not be stored, each asked for twice.',
    max: 20_000,
    head: (number) => `GET /open/read/private?x=${long(Math.floor(number / 2), 8_000)} HTTP/1.1`,
  }),
  filling({
    name: 'upstream-tags',
    description: 'Each answer has 120 tags of 120 bytes that no other one has.',
    max: 12_000,
    head: (number) => `GET /open/read/tagged?n=${number} HTTP/1.1`,
  }),
  filling({
    name: 'rate-limit-keys',
    description: 'Distinct credentials of 12,000 bytes, each its own caller for a rate limit.',
    max: 20_000,
    head: (number) => `GET /open/hit/a HTTP/1.1\r\nAuthorization: Bearer ${long(number, 12_000)}`,
    settings: () => ({
      rateLimits: [{ name: 'callers', service: 'open', by: 'credential', max: 1_000_000 }],
    }),
  }),
  filling({
    name: 'callers-own-answers',
    description: 'Distinct credentials of 12,000 bytes, of which each has its own stored response.',
    max: 20_000,
    head: (number) => `GET /open/own/a HTTP/1.1\r\nAuthorization: Bearer ${long(number, 12_000)}`,
    settings: ({ upstream }) => ({
      services: {
        open: openService(upstream, {
          cache: {
            rules: [
              { match: 'GET /hit/**', ttl: '10m' },
              { match: 'GET /read/**', ttl: '10m' },
              { match: 'GET /own/**', ttl: '10m', scope: 'credential' },
            ],
          },
        }),
      },
    }),
  }),
]
