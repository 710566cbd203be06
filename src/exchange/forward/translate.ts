import { pipeline, type Readable } from 'node:stream'
import { requestHeader } from '../../http/headers/header-lines.ts'
import type { PublicLinks } from '../../http/headers/links.ts'
import type { GatewayResponse, Interim, ResponseHead } from '../../http/message.ts'
import type { ContentMapper, Translation } from '../../service/connection.ts'
import type { ValidatedContext } from '../request-context.ts'

const mappedContent = (content: Buffer | Readable, mapper: ContentMapper): Buffer | Readable => {
  if (Buffer.isBuffer(content)) return mapper.whole(content)
  const mapped = mapper.transform()
  // An error on either side ends both; the reader of the mapped stream sees it.
  pipeline(content, mapped, () => {})
  return mapped
}

const translatedResponse = (response: GatewayResponse, translation: Translation): GatewayResponse => {
  const { headers, mapper } = translation.fromUpstream(response.headers)
  return mapper === undefined || response.content === undefined
    ? { ...response, headers }
    : { ...response, headers, content: mappedContent(response.content, mapper) }
}

const withPublicLinks = <Head extends ResponseHead>(head: Head, links: PublicLinks, path: string): Head => {
  const headers = links(head.headers, path)
  return headers === head.headers ? head : { ...head, headers }
}

/** In the upstream's names. */
export const translatedContent = ({
  service,
  content,
  request,
}: ValidatedContext): ValidatedContext['content'] | Promise<Buffer> => {
  const { translation } = service.address
  return translation === undefined || !Buffer.isBuffer(content)
    ? content
    : translation.toUpstreamContent(content, requestHeader(request.headers, 'content-type'))
}

/** In public names, with public URLs. */
export const publicResponse = (
  { service, matching }: ValidatedContext,
  response: GatewayResponse,
): GatewayResponse => {
  const { translation, links } = service.address
  if (translation !== undefined) return translatedResponse(response, translation)
  return links === undefined ? response : withPublicLinks(response, links, matching.path)
}

export const publicInterim = ({ request, service, matching }: ValidatedContext): Interim | undefined => {
  const { interim } = request
  const { links } = service.address
  if (interim === undefined || links === undefined) return interim
  return (head) => interim(withPublicLinks(head, links, matching.path))
}
