import { pipeline, type Readable } from 'node:stream'
import { requestField } from '../../http/fields.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { type ContentMapper, createContentTransform, mapWhole } from '../../request/content-mapper.ts'
import { asTranslated, type Outgoing, type Phase, type Translated, whenAnswered } from '../exchange.ts'
import type { Translation } from '../service.ts'

const mappedContent = (content: Buffer | Readable, mapper: ContentMapper): Buffer | Readable => {
  if (Buffer.isBuffer(content)) return mapWhole(mapper, content)
  const mapped = createContentTransform(mapper)
  // An error on either side ends both; the reader of the mapped stream sees it.
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

/** Public names and URLs become the upstream's in the request, and public again in the response: once for each stored response. */
export const translate = (): Phase<Outgoing, Translated> => ({
  name: 'translate',
  run: (exchange, next) => {
    const { service, matching, query, content, request } = exchange
    const { translation, basePath } = service
    if (translation === undefined) {
      const target = query === '' ? matching.path : `${matching.path}?${query}`
      return next(asTranslated(exchange, `${basePath}${target}`, content))
    }
    const upstreamContent = Buffer.isBuffer(content)
      ? translation.toUpstreamContent(content, requestField(request.fields, 'content-type'))
      : content
    const upstreamTarget = `${basePath}${translation.toUpstreamTarget(matching.path, query)}`
    return whenAnswered(next(asTranslated(exchange, upstreamTarget, upstreamContent)), (response) =>
      translatedResponse(response, translation),
    )
  },
})
