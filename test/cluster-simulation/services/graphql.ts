import { targetParts } from '../../../src/http/targets.ts'
import {
  get,
  type Interface,
  items,
  json,
  jsonType,
  present,
  type Resource,
  type Shown,
  type SimulatedRequest,
  type Verb,
  type View,
} from './interface.ts'

export const graphqlPath = '/graphql'

const jsonHeaders = { 'content-type': 'application/json' } as const

type Node = { readonly databaseId: number; readonly title: string }
type Result = {
  readonly data: { readonly post?: Node | null; readonly posts?: { readonly nodes: readonly Node[] } }
}

/** A list of operations is answered with a list. */
const shown = (text: string): Shown | undefined => {
  const [result] = [JSON.parse(text) as Result | readonly Result[]].flat() as readonly Partial<Result>[]
  if (result?.data === undefined) return undefined
  const { post, posts } = result.data
  const nodes = posts?.nodes ?? (post === undefined || post === null ? [] : [post])
  return Object.fromEntries(nodes.map(({ databaseId, title }) => [databaseId, Number(title)]))
}

const byGet = (query: string, variables?: unknown): SimulatedRequest => {
  const more = variables === undefined ? '' : `&variables=${encodeURIComponent(JSON.stringify(variables))}`
  return get(`${graphqlPath}?query=${encodeURIComponent(query)}${more}`)
}

const byPost = (content: unknown): SimulatedRequest => ({
  ...{ method: 'POST', target: graphqlPath, headers: jsonHeaders, content: json(content) },
})

const byVariable = 'query Post($id: ID!) { post(id: $id, idType: DATABASE_ID) { databaseId title } }'
const all = '{ posts { nodes { databaseId title } } }'

const postOf = (item: number): Resource => {
  const literal = `{ post(id: "${item}", idType: DATABASE_ID) { databaseId title } }`
  const variables = { id: String(item) }
  return {
    ...{ name: `${graphqlPath}:post:${item}`, items: [item], shown },
    requests: [
      byGet(literal),
      byGet(byVariable, variables),
      byPost({ query: literal }),
      byPost({ query: byVariable, variables, operationName: 'Post' }),
    ],
  }
}

const posts: Resource = {
  ...{ name: `${graphqlPath}:posts`, items, shown },
  requests: [
    byGet(all),
    byPost({ query: all }),
    byPost({ query: '{\n  posts {\n    nodes { databaseId, title }\n  }\n}' }),
    byPost([{ query: all }]),
  ],
}

type Asked = { readonly query?: string; readonly variables?: { readonly id?: string } | string }

const askedBy = (target: string, content: Buffer | undefined): Asked | undefined => {
  if (content !== undefined && content.length > 0) return JSON.parse(content.toString()) as Asked
  const asked = Object.fromEntries(new URLSearchParams(targetParts(target).query)) as Asked
  return asked.query === undefined ? undefined : asked
}

const nodesOf: (...given: Parameters<typeof present>) => readonly Node[] = (states) =>
  present(states).map(([databaseId, version]) => ({ databaseId, title: String(version) }))

const viewOf: Interface['viewOf'] = ({ target, content }): View | undefined => {
  if (targetParts(target).path !== graphqlPath) return undefined
  const asked = askedBy(target, content)
  if (asked?.query === undefined) return undefined
  const { query } = asked
  const view = (shownItems: readonly number[], data: (nodes: readonly Node[]) => Result['data']): View => ({
    items: shownItems,
    rendered: (states) => ({
      ...{ status: 200, headers: jsonType, content: json({ data: data(nodesOf(states)) }) },
    }),
  })
  if (query.includes('posts')) return view(items, (nodes) => ({ posts: { nodes } }))
  const variables = typeof asked.variables === 'string' ? JSON.parse(asked.variables) : asked.variables
  const id = Number((variables as { readonly id?: string } | undefined)?.id ?? /"(\d+)"/.exec(query)?.[1])
  return view([id], ([post = null]) => ({ post }))
}

const inputs: Readonly<Record<Verb, (item: number) => string>> = {
  save: (item) => `updatePost(input: { id: "${item}", title: "another" })`,
  publish: (item) => `updatePost(input: { id: "${item}", title: "another", status: PUBLISH })`,
  delete: (item) => `deletePost(input: { id: "${item}" })`,
}

const mutation = (item: number, verb: Verb): string =>
  `mutation { ${inputs[verb](item)} { post { databaseId title } } }`

/** The same items by another service at the same upstream. A mutation by GET has to be refused. */
export const withGraphql = (rest: Interface): Interface => ({
  ...rest,
  lists: [...rest.lists, posts, ...items.map(postOf)],
  viewOf: (request) => viewOf(request) ?? rest.viewOf(request),
  write: (item, verb, way) => {
    if (way === 'rest') return rest.write(item, verb, way)
    const query = mutation(item, verb)
    return way === 'graphql' ? byPost({ query }) : byGet(query)
  },
  written: (write) => {
    if (write.way === 'rest') return rest.written(write)
    const post = { databaseId: write.item, title: String(write.version) }
    const field = write.verb === 'delete' ? 'deletePost' : 'updatePost'
    return { status: 200, content: json({ data: { [field]: { post } } }) }
  },
})
