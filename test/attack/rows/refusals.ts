import { audience, createKey, issuerName, startIssuer } from '../../support/issuer.ts'
import type { Script } from '../../support/origin.ts'
import { type AttackRow, all, fault, faultsOf, riseAbove, row, type Seen, type Tree } from '../attack-row.ts'
import { ask, attacker, dial, leftOf, over, pick } from '../clients.ts'
import { count, keepHolding, type Tally } from '../holding.ts'
import { originOf, type Scene, scriptedOrigin } from '../scene.ts'
import { openService, plantsService, site, siteService } from '../services.ts'

// Requests that are refused, whose bodies go on; and tokens that no key fits, while their issuer answers as it likes.

const post = (path: string, headers: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}Transfer-Encoding: chunked\r\n\r\n`

/** Each is answered before its content is needed. */
const refused: readonly (readonly [title: string, head: string])[] = [
  ['no service', post('/nowhere/at/all', '')],
  ['no access', post('/guarded/up', '')],
  ['a type that is not taken', post(`${site}/site/v2/posts`, 'Content-Type: text/csv\r\n')],
  ['a limit', post('/open/limited', '')],
  ['no route', post('/plants/no/such/route', 'Content-Type: application/json\r\n')],
  ['a path that is ambiguous', post('/open/..%2f..%2fx', '')],
]

const chunk = (size: number): string => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
/** More than is dropped for the sake of the next request, and one that is not. */
const endless = ['1\r\nx\r\n'.repeat(50), chunk(16_384)]
const short = `${chunk(100_000)}0\r\n\r\n`

type Found = { readonly tally: Tally; readonly bufferedBytes: number; readonly stuck: readonly string[] }

/** The request behind a short body that was refused is answered, or the connection is closed. */
const askBehind = async (scene: Scene): Promise<readonly string[]> => {
  const stuck: string[] = []
  for (const [title, head] of refused) {
    const socket = await dial(scene, '127.0.0.4')
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
    })
    socket.write(`${head}${short}GET /open/hit/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await Promise.race([closed, over(AbortSignal.timeout(10_000))])
    if (!/^HTTP\/1\.1 4\d\d /.test(text))
      stuck.push(`${title}: answered ${JSON.stringify(text.slice(0, 40))}`)
    if (!socket.closed) stuck.push(`${title}: the connection is stuck behind the body`)
  }
  return stuck
}

const refusedBodies = row<Found>({
  name: 'refused-bodies',
  description:
    '60 connections go on sending the bodies of refused requests; short ones are read, others are cut.',
  settings: ({ upstream }) => ({
    rateLimits: [{ name: 'limited', service: 'open', match: 'POST /limited', max: 1, window: '1h' }],
    services: {
      open: openService(upstream),
      guarded: {
        contract: 'open',
        mount: '/guarded',
        upstream: { targets: [upstream] },
        access: { allow: ['192.0.2.1'] },
      },
      site: siteService(upstream),
      plants: plantsService(upstream),
    },
  }),
  attack: async (scene, signal) => {
    const tally: Tally = {}
    // The first one is within the limit.
    for (const from of [attacker, '127.0.0.4'])
      await ask(scene.origin, '/open/limited', { method: 'POST', from })
    const stuck = askBehind(scene)
    let at = 0
    await keepHolding(scene, signal, tally, {
      sockets: 60,
      addresses: [attacker],
      hold: (socket) => {
        at += 1
        socket.write(pick(refused, at)[1])
        const piece = pick(endless, Math.floor(at / refused.length))
        socket.on('data', (bytes) => {
          const status = /^HTTP\/1\.1 (\d{3})/.exec(bytes.toString('latin1'))?.[1]
          if (status !== undefined) count(tally, status)
        })
        const timer = setInterval(
          () => socket.writable && !socket.writableNeedDrain && socket.write(piece),
          20,
        )
        return () => clearInterval(timer)
      },
    })
    return { tally, bufferedBytes: await leftOf(scene, 'trellis_buffered_bytes'), stuck: await stuck }
  },
  verdict: all<Found>(riseAbove(100), ({ found }) => [
    ...faultsOf(found.stuck),
    ...faultsOf(
      found.bufferedBytes === 0 ? [] : [`${found.bufferedBytes} octets of bodies are still counted`],
    ),
  ]),
})

const never = (): Promise<void> => new Promise(() => {})
const huge = Buffer.alloc(64 * 1024, ' ')

const issuers: Readonly<Record<string, Script>> = {
  silent: never,
  slow: async (_, { write, socket }) => {
    write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
    const timer = setInterval(() => write(' '), 50)
    socket.once('close', () => clearInterval(timer))
  },
  huge: (_, { socket }) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{"keys":[')
    const more = (): void => {
      while (!socket.destroyed && socket.write(huge));
    }
    socket.on('drain', more)
    more()
  },
  failing: (_, wire) => wire.respond({ status: 500, content: 'no' }),
  resetting: (_, wire) => wire.reset(),
  redirecting: ({ target }, wire) => wire.respond({ status: 302, headers: { Location: `${target}x` } }),
  'of many keys': (_, wire) =>
    wire.respond({
      content: JSON.stringify({ keys: Array.from({ length: 2_000 }, (_, at) => ({ kid: `${at}` })) }),
    }),
}

type Tokens = { readonly statuses: Tally; readonly fetches: number; readonly seconds: number }

const issuerRow = (kind: string, script: Script | undefined, rightStatus: string): AttackRow =>
  row<Tokens>({
    name: `issuer-${kind.replaceAll(' ', '-')}`,
    description: `Tokens with random key ids, each unknown, while the issuer is ${kind}.`,
    settings: async (scene) => {
      const issuer = await startIssuer([await createKey('first')])
      scene.resources.add(() => issuer.close())
      const origin = await scriptedOrigin(scene, script ?? issuer.lists)
      const access: Tree = { jwt: { jwks: `${origin.origin}/keys`, issuer: issuerName, audience } }
      return {
        services: {
          open: openService(scene.upstream),
          guarded: { contract: 'open', mount: '/guarded', upstream: { targets: [scene.upstream] }, access },
        },
      }
    },
    attack: async (scene, signal) => {
      const stranger = await createKey('stranger')
      const issuer = await startIssuer([stranger])
      scene.resources.add(() => issuer.close())
      const statuses: Tally = {}
      let number = 0
      const one = async (): Promise<void> => {
        while (!signal.aborted) {
          number += 1
          const token = await issuer.token({ header: { kid: `kid-${number}-${Math.random()}` } })
          const { status } = await ask(scene.origin, '/guarded/x', {
            headers: { Authorization: `Bearer ${token}` },
          })
          count(statuses, String(status))
        }
      }
      await Promise.all(Array.from({ length: 20 }, one))
      return { statuses, fetches: originOf(scene).received.length, seconds: scene.seconds }
    },
    verdict: all<Tokens>(riseAbove(100), ({ found }: Seen<Tokens>) => {
      const others = Object.keys(found.statuses).filter((status) => status !== rightStatus)
      return [
        ...(others.length === 0 ? [] : [fault(`tokens were answered ${JSON.stringify(found.statuses)}`)]),
        // One for the start, and no more than one a second.
        ...(found.fetches <= 2 + found.seconds
          ? []
          : [fault(`${found.fetches} fetches in ${found.seconds} s`)]),
      ]
    }),
  })

export const refusalRows: readonly AttackRow[] = [
  refusedBodies,
  issuerRow('sound', undefined, '401'),
  ...Object.entries(issuers).map(([kind, script]) => issuerRow(kind, script, '503')),
]
