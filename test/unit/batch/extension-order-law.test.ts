import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { BatchItem, ItemAnswer } from '../../../src/batch/item.ts'
import { batchOf, runBatch } from './batch-of.ts'

/** A store of posts: each has a title that another item may read or write. */
type Operation = {
  readonly method: 'GET' | 'PUT'
  readonly post: number
  /** Earlier item whose title becomes this one's; otherwise its own title. */
  readonly from: number | undefined
  readonly dependsOn: readonly number[]
}

const answered = (title: string | undefined): ItemAnswer =>
  title === undefined
    ? { status: 404, fields: [], content: Buffer.from('{}') }
    : { status: 200, fields: [], content: Buffer.from(JSON.stringify({ title })) }

const apply = (posts: Map<number, string>, post: number, title: string | undefined): ItemAnswer => {
  if (!posts.has(post)) return answered(undefined)
  if (title !== undefined) posts.set(post, title)
  return answered(posts.get(post))
}

/** Post 4 does not exist, so that some items fail. */
const seeded = () => new Map([1, 2, 3].map((id) => [id, `seed ${id}`]))

type Seen = { readonly status: number; readonly title: string | undefined }

/** One after the other, by the letter of the documentation. */
const sequential = (operations: readonly Operation[]): { seen: Seen[]; posts: Map<number, string> } => {
  const posts = seeded()
  const seen: Seen[] = []
  for (const [at, { method, post, from, dependsOn }] of operations.entries()) {
    const needs = from === undefined ? dependsOn : [...dependsOn, from]
    if (needs.some((one) => seen[one]?.status !== 200)) {
      seen.push({ status: 424, title: undefined })
      continue
    }
    const own = method === 'PUT' ? (from === undefined ? `set ${at}` : seen[from]?.title) : undefined
    const { status, content } = apply(posts, post, own)
    seen.push({ status, title: JSON.parse(content.toString()).title })
  }
  return { seen, posts }
}

const requestOf = ({ method, post, from, dependsOn }: Operation, at: number) => ({
  id: `i${at}`,
  method,
  path: `/site/v2/posts/${post}`,
  ...(dependsOn.length > 0 ? { dependsOn: dependsOn.map((one) => `i${one}`) } : {}),
  ...(method === 'PUT'
    ? { body: { title: from === undefined ? `set ${at}` : { $ref: `i${from}#/body/title` } } }
    : {}),
})

const operations = fc
  .array(
    fc.record({
      method: fc.constantFrom('GET' as const, 'PUT' as const),
      post: fc.constantFrom(1, 2, 3, 4),
      from: fc.option(fc.nat(), { nil: undefined }),
      dependsOn: fc.array(fc.nat(), { maxLength: 2 }),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((all) =>
    all.map(
      ({ method, post, from, dependsOn }, at): Operation => ({
        method,
        post,
        from: at === 0 || method === 'GET' || from === undefined ? undefined : from % at,
        dependsOn: at === 0 ? [] : dependsOn.map((one) => one % at),
      }),
    ),
  )

test('whatever depends on whatever, and however long each takes: the outcome is that of one after the other', async () => {
  await fc.assert(
    fc.asyncProperty(operations, fc.array(fc.nat(4), { minLength: 8, maxLength: 8 }), async (all, delays) => {
      const posts = seeded()
      const sent: number[] = []
      const batch = batchOf({
        extensions: 'on',
        dispatch: async (item: BatchItem) => {
          sent.push(item.index)
          const post = Number(item.path.split('/').at(-1))
          const title = item.content === undefined ? undefined : JSON.parse(item.content.toString()).title
          // Reads at its start and writes at its end: in between others may come.
          const before = new Map(posts)
          for (let turn = 0; turn < (delays[item.index] ?? 0); turn += 1) {
            await new Promise((resolve) => setImmediate(resolve))
          }
          return title === undefined ? apply(before, post, undefined) : apply(posts, post, title)
        },
      })
      const { responses } = await runBatch(batch, all.map(requestOf))
      const expected = sequential(all)
      const seen = responses.map(({ status, body }) => ({
        status,
        title: status === 200 ? (body as { title: string }).title : undefined,
      }))
      expect(seen).toEqual(expected.seen)
      expect(posts).toEqual(expected.posts)
      // What answers 424 has not been sent.
      for (const index of sent) expect(expected.seen[index]?.status).not.toBe(424)
    }),
    { numRuns: 300 },
  )
})
