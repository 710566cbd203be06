import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { ask, type Sight } from './ask.ts'
import { type Asked, asked, type Fault } from './fault.ts'
import { buildStage, type Stage } from './stage.ts'

/** What happened while one fault was played. */
export type Played = {
  readonly seen: Readonly<Record<Asked, string>>
  /** Responses to the reader of what was stored before: at the beginning and at the end of the fault. */
  readonly hits: readonly Sight[]
  /** Reads after the fault was over, of what had been asked for while it lasted. */
  readonly afterwards: readonly Sight[]
  /** Request lines that reached the upstream while the fault lasted. */
  readonly received: readonly string[]
}

/** Short, so that a fault that has to be waited out takes a second; not so short that a busy machine looks like a fault. */
const times = { connect: '800ms', headers: '800ms', idle: '800ms', total: '1600ms' }

const nameOf = (index: number): string => `f${index}`

/** Copies: YAML would make aliases of what is the same, and the configuration takes only some. */
const upstreamOf = ({ target, settings }: Stage) =>
  structuredClone({ targets: [target], timeouts: times, ...settings })

const servicesOf = (stages: readonly Stage[]) =>
  Object.fromEntries(
    stages.flatMap((stage, index) => [
      [
        nameOf(index),
        {
          contract: 'site',
          mount: `/${nameOf(index)}`,
          discovery: { source: 'static', identity: { name: 'Matrix' } },
          batch: { split: 'item' },
          upstream: { ...upstreamOf(stage), basePath: '/wp-json' },
          cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
        },
      ],
      [
        `open-${nameOf(index)}`,
        { contract: 'open', mount: `/open/${nameOf(index)}`, upstream: upstreamOf(stage) },
      ],
    ]),
  )

const post = (body: unknown) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  content: JSON.stringify(body),
})

const itemStatuses = ({ seen, content }: Sight): string => {
  if (seen !== '207') return `batch ${seen}`
  const { responses } = JSON.parse(content) as { responses: { status: number }[] }
  return [...new Set(responses.map(({ status }) => status))].sort().join(' ')
}

/** Posts are written; neither of these shows any. */
const stored = '/site/v2/templates'
const read = (round: number) => `/site/v2/global-styles/${20 + round}`
const written = '/site/v2/posts/22'
const upload = Buffer.alloc(1024 * 1024, 'u')

const playOne = async (gateway: TestGateway, round: number, index: number, stage: Stage): Promise<Played> => {
  const site = `${gateway.publicAddress}/${nameOf(index)}`
  const open = `${gateway.publicAddress}/open/${nameOf(index)}`
  // A busy machine may need more than one.
  for (let tries = 0; tries < 20; tries += 1) {
    if ((await ask(site + stored)).cacheStatus.includes('hit')) break
  }
  await stage.fail()
  const before = stage.received().length
  const hits = [await ask(site + stored)]
  const items = [23, 24].map((id) => ({ path: `/site/v2/posts/${id}`, body: { title: 'x' } }))
  const held = {
    miss: (await ask(site + read(round))).seen,
    write: (await ask(site + written, post({ title: 'x' }))).seen,
    batch: itemStatuses(await ask(`${site}/batch/v1`, post({ requests: items }))),
  }
  // Runs before the upload, which through the other service has an unknown outcome and invalidates everything of this upstream.
  hits.push(await ask(site + stored))
  const seen = {
    ...held,
    pass: (await ask(`${open}/pass`)).seen,
    upload: (
      await ask(`${open}/upload`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/octet-stream' },
        content: upload,
      })
    ).seen,
  }
  const received = stage.received().slice(before)
  await stage.recover()
  const afterwards: Sight[] = []
  for (const url of [site + read(round), site + read(round), site + written, `${open}/pass`])
    afterwards.push(await ask(url))
  return { seen, hits, afterwards, received }
}

/** All upstreams behind one gateway. */
export type Matrix = {
  readonly gateway: TestGateway
  /** Plays faults (by index), several at a time, each with its own upstream; each round reads other URLs. */
  play(round: number, faults: readonly number[], atOnce: number): Promise<readonly Played[]>
  close(): Promise<void>
}

export const buildMatrix = async (faults: readonly Fault[]): Promise<Matrix> => {
  const stages = await Promise.all(faults.map(buildStage))
  const gateway = await startTestGateway({
    cache: { maxEntryBytes: '256KiB' },
    services: servicesOf(stages),
  })
  return {
    gateway,
    async play(round, numbers, atOnce) {
      const played: Played[] = []
      const waiting = numbers.map((number) => [number, stages[number] as Stage] as const)
      const work = async (): Promise<void> => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
          played[next[0]] = await playOne(gateway, round, ...next)
        }
      }
      await Promise.all(Array.from({ length: atOnce }, work))
      return played
    },
    async close() {
      await gateway.close()
      await Promise.all(stages.map((stage) => stage.close()))
    },
  }
}

/** Did clients see what the row says? */
export const fits = ({ seen }: Fault, played: Played | undefined): boolean =>
  asked.every((one, at) => seen[at]?.split('|').includes(played?.seen[one] ?? ''))

/** Is a response served that the healthy upstream never gave? */
export const isWrong = (sight: Sight): boolean => sight.seen.startsWith('200') && !isGood(sight)

/** Is it what the upstream says when it is well? */
export const isGood = ({ seen, content }: Sight): boolean =>
  seen === '200' && content.includes('"slug":"good"')
