import { afterAll, beforeAll, expect, test } from 'vitest'
import { allWorkers } from '../properties/living-workers.ts'
import { lineToEach, type Member } from '../properties/stopped-member.ts'
import { runCommand } from '../support/command.ts'
import { siteService } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const root = '/index.php/site-json/site/v2'
const versions = new Map<string, number>()
let origin: Origin
let gateway: GatewayProcess

beforeAll(async () => {
  origin = await startOrigin(({ method, target }, wire) => {
    const id = /posts\/(\d+)/.exec(target)?.[1] ?? ''
    if (method === 'POST') versions.set(id, (versions.get(id) ?? 0) + 1)
    const post = { id: Number(id), type: 'post', status: 'publish', title: `${versions.get(id) ?? 0}` }
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: JSON.stringify(post) })
  })
  gateway = await startGatewayProcess({
    workers: 2,
    // The lines that name the workers.
    log: { level: 'info' },
    services: {
      site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] } }),
    },
  })
})
afterAll(async () => {
  await gateway?.stop()
  await origin?.close()
})

type Changes = {
  readonly build: string
  readonly reads: number
  readonly changed: readonly string[]
  readonly torn: boolean
}

const changed = async (since?: string): Promise<Changes> => {
  const words = since === undefined ? [] : ['--since', since]
  const { end, stdout } = await runCommand(['changed', ...words, '--json', '--admin', gateway.adminOrigin])
  expect(end).toBe(0)
  return JSON.parse(stdout) as Changes
}
const write = async (id: number): Promise<void> => {
  const response = await fetch(`${gateway.origin}${root}/posts/${id}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
    body: '{"title":"x"}',
  })
  expect(response.status).toBe(200)
}
/** The parent gives a worker that is busy no connection: on a busy machine to each in turn only after some time. */
const lineToBoth = async (): Promise<readonly [Member, Member]> => {
  for (;;) {
    const members = await lineToEach(gateway.origin, await allWorkers(gateway, 2))
    const [one, other] = members
    if (one !== undefined && other !== undefined) return [one, other]
    for (const { line } of members) line.close()
  }
}
/** Each of both workers by a connection of its own. */
const workers = async () => {
  const [one, other] = await lineToBoth()
  const readBy =
    (line: typeof one.line) =>
    async (build: string, id: number): Promise<void> => {
      const { host } = new URL(gateway.origin)
      const { status } = await line.ask(
        `GET ${root}/posts/${id} HTTP/1.1\r\nHost: ${host}\r\nTrellis-Build: ${build}\r\n\r\n`,
      )
      expect(status).toBe(200)
    }
  const close = (): void => {
    for (const { line } of [one, other]) line.close()
  }
  return { one: readBy(one.line), other: readBy(other.line), close }
}

test('trellis changed tells what has changed of the reads of both workers, in one list', async () => {
  const { one, other, close } = await workers()
  const { build } = await changed()
  for (const id of [1, 2, 3]) await one(build, id)
  for (const id of [4, 5, 6, 7]) await other(build, id)
  expect(await changed(build)).toMatchObject({ reads: 7, changed: [], torn: false })
  await write(2)
  await write(5)
  const next = await changed(build)
  expect(next).toMatchObject({ reads: 7, changed: [`${root}/posts/2`, `${root}/posts/5`], torn: false })
  // The build that follows has what has not changed, of both.
  expect(await changed(next.build)).toMatchObject({ reads: 5, changed: [], torn: false })
  await one(next.build, 5)
  await other(next.build, 2)
  await write(1)
  await write(7)
  expect(await changed(next.build)).toMatchObject({
    reads: 7,
    changed: [`${root}/posts/1`, `${root}/posts/7`],
    torn: false,
  })
  close()
})

test('a write between a read of one worker and a read of the other falls into the build', async () => {
  const { one, other, close } = await workers()
  const { build } = await changed()
  await one(build, 11)
  await write(11)
  await other(build, 12)
  expect(await changed(build)).toMatchObject({ changed: [`${root}/posts/11`], torn: true })
  close()
})
