import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'

type Resolver = (parent: never, args: never, context: never) => unknown

type YogaModule = {
  createSchema(options: {
    readonly typeDefs: string
    readonly resolvers: Readonly<Record<string, Readonly<Record<string, Resolver>>>>
  }): unknown
  createYoga(options: {
    readonly schema: unknown
    readonly logging: boolean
    readonly maskedErrors: boolean
    readonly batching: boolean
  }): RequestListener
}

// Not imported: its types bring the DOM into all of the source.
const require = createRequire(import.meta.url)
const { createSchema, createYoga } = require('graphql-yoga') as YogaModule

export type GraphqlServer = {
  readonly origin: string
  /** What was asked since the last `forget`. */
  readonly requests: {
    readonly method: string
    readonly url: string
    readonly headers: IncomingHttpHeaders
    readonly body: string
  }[]
  readonly posts: Map<string, { id: string; title: string; authorId: string }>
  /** Fields of the next responses. */
  headers: Record<string, string>
  forget(): void
  close(): Promise<void>
}

const typeDefs = /* GraphQL */ `
  type Author { id: ID! name: String posts: [Post!]! }
  type Post { id: ID! title: String author: Author }
  type Query {
    posts(first: Int = 10, ids: [ID!]): [Post!]!
    post(id: ID!): Post
    author(id: ID!): Author
    me: String
    fails: String
    number(value: Float): Float
  }
  type Mutation { setTitle(id: ID!, title: String!): Post addPost(title: String!, author: ID!): Post }
`

/** A GraphQL server with posts that mutations change: graphql-yoga, as others run it. */
export const startGraphqlServer = async (): Promise<GraphqlServer> => {
  const posts: GraphqlServer['posts'] = new Map([
    ['1', { id: '1', title: 'First', authorId: '7' }],
    ['2', { id: '2', title: 'Second', authorId: '7' }],
  ])
  type PostRow = { id: string; title: string; authorId: string }
  const author = (id: string) => ({
    id,
    name: `Author ${id}`,
    posts: () => [...posts.values()].filter((post) => post.authorId === id),
  })
  const schema = createSchema({
    typeDefs,
    resolvers: {
      Post: { author: ({ authorId }: PostRow) => author(authorId) },
      Query: {
        posts: (_: unknown, { first, ids }: { first: number; ids?: string[] }) =>
          [...posts.values()].filter(({ id }) => ids?.includes(id) ?? true).slice(0, first),
        post: (_: unknown, { id }: { id: string }) => posts.get(id) ?? null,
        author: (_: unknown, { id }: { id: string }) => author(id),
        me: (_: unknown, _args: unknown, { request }: { request: Request }) =>
          request.headers.get('authorization'),
        fails: () => {
          throw new Error('failed on purpose')
        },
        number: (_: unknown, { value }: { value: number }) => value,
      },
      Mutation: {
        setTitle: (_: unknown, { id, title }: { id: string; title: string }) => {
          const post = posts.get(id)
          if (post !== undefined) post.title = title
          return post ?? null
        },
        addPost: (_: unknown, { title, author: authorId }: { title: string; author: string }) => {
          const post = { id: String(posts.size + 1), title, authorId }
          posts.set(post.id, post)
          return post
        },
      },
    },
  })
  const yoga = createYoga({ schema, logging: false, maskedErrors: false, batching: true })
  const requests: GraphqlServer['requests'] = []
  const state = { headers: {} as Record<string, string> }
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming
      requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      for (const [name, value] of Object.entries(state.headers)) outgoing.setHeader(name, value)
    })
    yoga(incoming, outgoing)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    posts,
    get headers() {
      return state.headers
    },
    set headers(headers) {
      state.headers = headers
    },
    forget: () => {
      requests.length = 0
      state.headers = {}
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
