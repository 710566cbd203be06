import { createHmac } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'

const secret = 'a secret of the hook'
let folder: string
let post: (request: Request) => Promise<Response>
const revalidated: unknown[][] = []

// The handler of docs/next.md, with a stand-in for what Next.js gives it.
beforeAll(async () => {
  const page = await readFile('docs/next.md', 'utf8')
  const shown = /`app\/api\/purge\/route\.ts`[\s\S]*?```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const handler = shown
    .replace("import { revalidateTag } from 'next/cache'", 'const revalidateTag = globalThis.revalidated')
    .replace('TRELLIS_SECRET!', 'TRELLIS_SECRET')
    .replace('request: Request', 'request')
  folder = await mkdtemp(join(tmpdir(), 'trellis-next-'))
  const file = join(folder, 'route.mjs')
  await writeFile(file, handler)
  process.env['TRELLIS_SECRET'] = secret
  Object.assign(globalThis, { revalidated: (...given: unknown[]) => revalidated.push(given) })
  post = ((await import(pathToFileURL(file).href)) as { readonly POST: typeof post }).POST
})
afterAll(async () => {
  Reflect.deleteProperty(process.env, 'TRELLIS_SECRET')
  Reflect.deleteProperty(globalThis, 'revalidated')
  await rm(folder, { recursive: true })
})

const purge = (body: string, signature: string): Promise<Response> =>
  post(new Request('http://a/', { method: 'POST', body, headers: { 'Trellis-Signature': signature } }))

const body = '{"tags":["0f1e2d3c4b5a","5a4b3c2d1e0f"],"all":false,"sequence":1}'
const signed = (key: string): string => `sha256=${createHmac('sha256', key).update(body).digest('hex')}`

test('the handler that docs/next.md shows expires each tag of a signed purge', async () => {
  expect((await purge(body, signed(secret))).status).toBe(204)
  expect(revalidated.splice(0)).toEqual([
    ['0f1e2d3c4b5a', { expire: 0 }],
    ['5a4b3c2d1e0f', { expire: 0 }],
  ])
})

test.each(['', 'sha256=', signed('another secret')])('and refuses a purge signed %j', async (signature) => {
  expect((await purge(body, signature)).status).toBe(403)
  expect(revalidated).toEqual([])
})
