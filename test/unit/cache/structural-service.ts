import { atOnce } from '../../../src/http/bodies/turns.ts'
import { inferResources } from '../../../src/openapi/document/resources.ts'
import { createOpenApiRequests } from '../../../src/openapi/requests/openapi-requests.ts'
import { createServiceTagger, createStructuralTagger } from '../../../src/openapi/tags/structural-tagger.ts'
import type { Found } from '../../../src/service/row.ts'
import type { Tagger } from '../../../src/service/tagger.ts'
import { contractOf } from '../openapi/requests/described.ts'

/**
 * A service of random shape with a state: collections, nested ones, parts and actions of items, lists with a filter, writes that
 * change other resources, and the document that declares these. Contents show what the state of a path is.
 */
type RandomService = {
  readonly document: object
  /** All targets that a GET may have now. */
  targets(): readonly string[]
  /** Status and content of a GET. */
  read(target: string): readonly [status: number, content: string]
  /** Carries a random write out; status 0: the outcome stays unknown to the gateway. */
  write(): Written
}

type Written = {
  readonly method: string
  readonly path: string
  readonly status: number
  /** What Location names. */
  readonly created?: string | undefined
}

type Random = (below: number) => number

/** mulberry32: the same service for the same seed. */
const randomOf = (seed: number): Random => {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

type Shape = {
  readonly name: string
  readonly nested: string | undefined
  readonly hasSummary: boolean
  readonly hasRecent: boolean
  /** Collection that an action changes too; `same`: only its item of the same id. */
  readonly closes: { readonly other: string; readonly same: boolean } | undefined
}

const parameters = (...names: readonly string[]) =>
  names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
const filter = [{ name: 'even', in: 'query', schema: { type: 'boolean' } }]

const pathsOf = ({ name, nested, hasSummary, hasRecent, closes }: Shape): Record<string, object> => ({
  [`/${name}`]: { get: { parameters: filter }, post: {} },
  [`/${name}/{id}`]: { parameters: parameters('id'), get: {}, put: {}, delete: {} },
  [`/${name}/{id}/close`]: {
    parameters: parameters('id'),
    post:
      closes === undefined
        ? {}
        : { 'x-trellis-invalidates': [closes.same ? `/${closes.other}/{id}` : `/${closes.other}`] },
  },
  ...(hasSummary ? { [`/${name}/{id}/summary`]: { parameters: parameters('id'), get: {} } } : {}),
  ...(hasRecent ? { [`/${name}/recent`]: { get: {} } } : {}),
  ...(nested === undefined
    ? {}
    : {
        [`/${name}/{id}/${nested}`]: { parameters: parameters('id'), get: { parameters: filter }, post: {} },
        [`/${name}/{id}/${nested}/{key}`]: {
          parameters: parameters('id', 'key'),
          get: {},
          put: {},
          delete: {},
        },
      }),
})

/** `undeclared`: actions change another collection as well, and the document does not say so. */
const randomService = (random: Random, undeclared = false): RandomService => {
  const names = ['boxes', 'cards', 'dogs'].slice(0, 2 + random(2))
  const shapes = names.map((name): Shape => {
    const other = names[random(names.length)] as string
    return {
      name,
      nested: random(3) > 0 ? 'parts' : undefined,
      hasSummary: random(2) > 0,
      hasRecent: random(2) > 0,
      closes: random(2) > 0 ? { other, same: random(2) > 0 } : undefined,
    }
  })
  /** Versions by path of the item. */
  const state = new Map<string, number>()
  for (const { name, nested } of shapes)
    for (let id = 1; id <= 4; id += 1) {
      state.set(`/${name}/${id}`, 0)
      for (let key = 1; nested !== undefined && key <= 2; key += 1)
        state.set(`/${name}/${id}/${nested}/${key}`, 0)
    }
  const below = (path: string): readonly [string, number][] =>
    [...state]
      .filter(([one]) => one === path || one.startsWith(`${path}/`))
      .sort(([a], [b]) => (a < b ? -1 : 1))
  const bump = (path: string): void => {
    for (const [one, version] of below(path)) if (one === path) state.set(one, version + 1)
  }
  const remove = (path: string): void => {
    for (const [one] of below(path)) state.delete(one)
  }
  const pick = <One>(list: readonly One[]): One => list[random(list.length)] as One
  const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))

  const shown = (path: string): string => JSON.stringify(below(path))
  const items = (list: string): readonly string[] =>
    [...state.keys()].filter((path) => parentOf(path) === list)

  const read: RandomService['read'] = (target) => {
    const [asked = '', query] = target.split('?')
    // Each item has a name beside its number.
    const path = asked.replace('/n', '/')
    if (path === '/stats') return [200, JSON.stringify([...state])]
    const last = path.slice(path.lastIndexOf('/') + 1)
    if (last === 'summary' || last === 'recent') return [200, `${last} ${shown(parentOf(path))}`]
    if (state.has(path)) return [200, shown(path)]
    if (/\/\d+$/.test(path)) return [404, 'none']
    const listed = items(path).filter((item) => query === undefined || (state.get(item) ?? 0) % 2 === 0)
    return [200, JSON.stringify(listed.map(shown))]
  }

  const create = (list: string): Pick<Written, 'status' | 'created'> => {
    const path = `${list}/${1 + random(9)}`
    const isThere = state.has(path)
    state.set(path, 10 + random(50))
    // An existing one is replaced; 201 with Location says that it is a new one.
    return isThere || random(3) === 0
      ? { status: 200 }
      : { status: 201, created: random(4) > 0 ? path : undefined }
  }

  const close = (path: string, { name, closes }: Shape): void => {
    bump(path)
    if (closes?.same === true) bump(`/${closes.other}/${path.slice(path.lastIndexOf('/') + 1)}`)
    else if (closes !== undefined) for (const item of items(`/${closes.other}`)) bump(item)
    if (undeclared) bump(pick(names.filter((other) => other !== name).flatMap((other) => items(`/${other}`))))
  }

  const writeTo = (shape: Shape, kind: number): Written => {
    const below = [...state.keys()].filter((one) => one.startsWith(`/${shape.name}/`))
    const path = pick([...below, `/${shape.name}/1`])
    if (kind < 4) return { method: 'POST', path: parentOf(path), ...create(parentOf(path)) }
    if (kind < 6 && path.split('/').length === 3) {
      close(path, shape)
      return { method: 'POST', path: `${path}/close`, status: 200 }
    }
    if (kind === 6) {
      remove(path)
      return { method: 'DELETE', path, status: 204 }
    }
    state.set(path, (state.get(path) ?? 0) + 1)
    return { method: 'PUT', path, status: 200 }
  }

  const carryOut = (): Written => {
    const kind = random(12)
    if (kind > 0) return writeTo(pick(shapes), kind)
    for (const path of [...state.keys()]) if (random(3) === 0) bump(path)
    return { method: 'POST', path: '/jobs', status: 202 }
  }

  /** `5`, `05`, `%35` and `5.0` are one item to this upstream. */
  const spelt = (path: string): string =>
    path.replace(/\d+/g, (id) => pick([id, id, id, `0${id}`, `%3${id}`, `${id}.0`]))

  return {
    document: {
      openapi: '3.1.0',
      info: { title: 'random', version: '1' },
      paths: {
        ...Object.assign({}, ...shapes.map(pathsOf)),
        '/stats': { get: {} },
        '/jobs': { post: {} },
      },
    },
    read,
    targets: () => [
      '/stats',
      ...shapes.flatMap(({ name, nested, hasSummary, hasRecent }) => [
        `/${name}`,
        `/${name}?even=true`,
        ...(hasRecent ? [`/${name}/recent`] : []),
        ...[1, 2, 3, 4, 5, 6].flatMap((id) => [
          `/${name}/${id}`,
          `/${name}/n${id}`,
          ...(hasSummary ? [`/${name}/${id}/summary`] : []),
          ...(nested === undefined
            ? []
            : [
                `/${name}/${id}/${nested}`,
                `/${name}/${id}/${nested}?even=true`,
                `/${name}/${id}/${nested}/1`,
                `/${name}/${id}/${nested}/3`,
              ]),
        ]),
      ]),
    ],
    write: () => {
      const written = carryOut()
      return { ...written, path: spelt(written.path), status: random(8) === 0 ? 0 : written.status }
    },
  }
}

/** A cache that holds everything until a write invalidates one of its tags. */
export type Checked = {
  /** Reads that got another content than the service has. */
  readonly stale: readonly string[]
  /** Of the stored responses whose content a write left as it was, how many it left in the cache. */
  readonly kept: number
  readonly unchanged: number
}

export type Mode = 'service' | 'structural'

type Stored = { readonly content: string; readonly tags: ReadonlySet<string> }

/** Reads everything, writes, and reads again, with the tags of a tagger alone. */
export const checkTags = (
  seed: number,
  mode: Mode,
  plan: { readonly writes: number; readonly undeclared?: boolean; spares?(tag: string): boolean },
): Checked => {
  const random = randomOf(seed)
  const service = randomService(random, plan.undeclared)
  const contract = contractOf(service.document)
  const requests = atOnce(
    createOpenApiRequests(contract, {
      limits: { queryParameters: 256, jsonDepth: 64 },
      unknownParameters: 'forward',
      trackingParameters: [],
    }),
  )
  const tagger: Tagger =
    mode === 'service'
      ? createServiceTagger({ service: 's' })
      : createStructuralTagger({ service: 's', resources: inferResources(contract.operations, []) })
  const found = (method: string, path: string): Found => {
    const routeMatch = requests.find(method, path)
    if (routeMatch.kind !== 'found') throw new Error(`${method} ${path}: ${routeMatch.kind}`)
    return routeMatch
  }
  const stored = new Map<string, Stored>()
  const stale: string[] = []
  let kept = 0
  let unchanged = 0
  const store = (target: string): void => {
    const [status, content] = service.read(target)
    const tags = tagger.storedTags(
      found('GET', target.split('?')[0] ?? ''),
      {},
      {
        status,
        headers: [],
        content: Buffer.from(content),
      },
    )
    stored.set(target, { content, tags: new Set(tags) })
  }
  const write = (): string => {
    const { method, path, status, created } = service.write()
    const response = status === 0 ? undefined : { status, headers: [], content: undefined, created }
    const tags = tagger.writtenTags(found(method, path), () => undefined, method, response)
    const dropping = tags.filter((tag) => plan.spares?.(tag) !== true)
    for (const [target, { tags: own }] of stored)
      if (dropping.some((tag) => own.has(tag))) stored.delete(target)
    return `${method} ${path} ${status}`
  }
  const compare = (written: string, target: string, content: string): void => {
    const isUnchanged = service.read(target)[1] === content
    if (isUnchanged) unchanged += 1
    if (!stored.has(target)) return
    if (isUnchanged) kept += 1
    else {
      stale.push(`${written}: ${target}`)
      stored.delete(target)
    }
  }
  for (let count = 0; count < plan.writes; count += 1) {
    for (const target of service.targets()) if (!stored.has(target)) store(target)
    const before = [...stored]
    const written = write()
    for (const [target, { content }] of before) compare(written, target, content)
  }
  return { stale, kept, unchanged }
}
