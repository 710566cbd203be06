import { pipeline, type Readable } from 'node:stream'
import { requestField } from '../../http/fields.ts'
import type { GatewayResponse, Outcome, ShapedHead } from '../../http/message.ts'
import { type ContentMapper, createContentTransform, mapWhole } from '../../request/content-mapper.ts'
import { whenAnswered } from '../answering.ts'
import { asTranslated, type Outgoing, type Phase, type Translated } from '../exchange.ts'
import type { Translation } from '../service.ts'

const mappedContent = (content: Buffer | Readable, mapper: ContentMapper): Buffer | Readable => {
  if (Buffer.isBuffer(content)) return mapWhole(mapper, content)
  const mapped = createContentTransform(mapper)
  // An error on either side ends both; who reads the mapped stream sees it.
  pipeline(content, mapped, () => {})
  return mapped
}

const translatedResponse = (response: GatewayResponse, translation: Translation): GatewayResponse => {
  const mapper = translation.fromUpstreamContent(response.fields)
  const fields = translation.fromUpstreamFields(response.fields)
  return mapper === undefined || response.content === undefined
    ? { ...response, fields }
    : { ...response, fields, content: mappedContent(response.content, mapper) }
}

const translatedHead = (head: ShapedHead, translation: Translation): ShapedHead => {
  const mapper = translation.fromUpstreamContent(head.fields)
  const fields = translation.fromUpstreamFields(head.fields)
  return mapper === undefined
    ? { ...head, fields }
    : { ...head, fields, through: createContentTransform(mapper) }
}

const identity = (query: string, path: string): string => (query === '' ? path : `${path}?${query}`)

/** Public names and URLs on the way to the upstream become its own, and on the way back public again: once for each stored response. */
export const translate = (): Phase<Outgoing, Translated> => ({
  name: 'translate',
  run: (exchange, next) => {
    const { service, matching, query, content, request } = exchange
    const { translation, basePath } = service
    if (translation === undefined) {
      return next(asTranslated(exchange, `${basePath}${identity(query, matching.path)}`, content))
    }
    const upstreamContent = Buffer.isBuffer(content)
      ? translation.toUpstreamContent(content, requestField(request.fields, 'content-type'))
      : content
    const upstreamTarget = `${basePath}${translation.toUpstreamTarget(matching.path, query)}`
    return whenAnswered(next(asTranslated(exchange, upstreamTarget, upstreamContent)), (outcome): Outcome => {
      if (outcome.kind === 'response') return translatedResponse(outcome, translation)
      return { ...outcome, shape: async (head) => translatedHead(await outcome.shape(head), translation) }
    })
  },
})
