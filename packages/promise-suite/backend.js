// @ts-check
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { randomFrom } from './random.js'

/**
 * @typedef {object} BackendOptions
 * @property {number} [port] 0 is any free port
 * @property {number} [maxAge] seconds, for Cache-Control
 * @property {number} [delay] longest time in ms between reading the data and the end of a response
 * @property {(groups: readonly string[]) => Promise<unknown>} [onWrite] is awaited before a write is answered
 */

/** @typedef {{ readonly version: number, readonly list: string }} Item */

const mostItems = 10_000
const mostBytes = 1_000

/** @param {import('node:http').IncomingMessage} request */
const readJson = async (request) => {
  let text = ''
  for await (const chunk of request) {
    text += chunk
    if (text.length > mostBytes) throw new Error('the content is too long')
  }
  return /** @type {unknown} */ (JSON.parse(text))
}

/**
 * @param {unknown} value
 * @returns {Item | undefined}
 */
const itemOf = (value) => {
  if (typeof value !== 'object' || value === null || !('version' in value && 'list' in value))
    return undefined
  const { version, list } = value
  return Number.isSafeInteger(version) && typeof list === 'string' && /^[\w-]{1,100}$/.test(list)
    ? { version: Number(version), list }
    : undefined
}

/** RFC 9875: a list of strings. @param {readonly string[]} groups */
const listField = (groups) => groups.map((group) => `"${group}"`).join(', ')

/** The reference backend: items with versions, lists of items, and the number of reads so far. @param {BackendOptions} options */
export const startBackend = async ({ port = 0, maxAge = 60, delay = 10, onWrite } = {}) => {
  /** @type {Map<string, Item>} */
  const items = new Map()
  const random = randomFrom(1)
  let reads = 0
  const pause = () => sleep(random() * delay)

  /** @param {string} id */
  const readItem = (id) => {
    const item = items.get(id)
    const content = item === undefined ? { error: 'not found' } : { id, version: item.version }
    return { status: item === undefined ? 404 : 200, content, groups: [`item-${id}`] }
  }
  /** @param {string} list */
  const readList = (list) => {
    const shown = [...items].filter(([, item]) => item.list === list)
    return {
      status: 200,
      content: { items: shown.map(([id, { version }]) => ({ id, version })) },
      groups: [`list-${list}`, ...shown.map(([id]) => `item-${id}`)],
    }
  }
  /**
   * @param {string} id
   * @param {Item | undefined} item without it, the item is deleted
   */
  const write = async (id, item) => {
    await pause()
    const lists = [items.get(id)?.list, item?.list].filter((list) => list !== undefined)
    if (item === undefined) items.delete(id)
    else items.set(id, item)
    await pause()
    const invalidates = [`item-${id}`, ...new Set(lists.map((list) => `list-${list}`))]
    await onWrite?.(invalidates)
    return { status: 200, content: { id, ...item }, invalidates }
  }

  /**
   * @template Answer
   * @param {Answer} answer what the data are now, on its way until the pause is over
   */
  const read = async (answer) => {
    reads += 1
    await pause()
    return answer
  }
  /** @param {string} id @param {import('node:http').IncomingMessage} request */
  const put = async (id, request) => {
    const item = itemOf(await readJson(request))
    if (item === undefined) return { status: 400, content: { error: 'not an item' } }
    if (items.size >= mostItems && !items.has(id))
      return { status: 507, content: { error: 'too many items' } }
    return write(id, item)
  }

  /** @param {import('node:http').IncomingMessage} request */
  const answer = async (request) => {
    const { pathname } = new URL(request.url ?? '/', 'http://backend')
    const [, kind, id = ''] = /\/(items|lists|reads)(?:\/([\w-]{1,100}))?$/.exec(pathname) ?? []
    switch (`${request.method} ${kind}${id === '' ? '' : '/'}`) {
      case 'GET items/':
        return read(readItem(id))
      case 'GET lists/':
        return read(readList(id))
      case 'PUT items/':
        return put(id, request)
      case 'DELETE items/':
        return write(id, undefined)
      case 'GET reads':
        return { status: 200, content: { reads } }
      default:
        return { status: kind === undefined ? 404 : 405, content: { error: 'no such route' } }
    }
  }

  const server = createServer(async (request, response) => {
    try {
      const { status, content, ...labels } = await answer(request)
      const isKept = 'groups' in labels
      response.writeHead(status, {
        'Content-Type': 'application/json',
        'Cache-Control': isKept ? `public, max-age=${maxAge}` : 'no-store',
        ...(isKept ? { 'Cache-Groups': listField(labels.groups) } : {}),
        ...('invalidates' in labels ? { 'Cache-Group-Invalidation': listField(labels.invalidates) } : {}),
      })
      response.end(JSON.stringify(content))
    } catch (error) {
      response.writeHead(error instanceof SyntaxError ? 400 : 500).end()
    }
  })
  await new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(undefined))
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the backend has no port')
  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    },
  }
}
