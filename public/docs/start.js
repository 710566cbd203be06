// Swagger UI, with what it lacks for screen readers. Addresses are relative: a proxy may serve the page below a path.

const asked = new URLSearchParams(location.search)
const service = asked.get('service')
const isAdmin = asked.has('admin')
document.documentElement.classList.toggle('dark-mode', matchMedia('(prefers-color-scheme: dark)').matches)

/** May this page, which is of another origin than the services, send them requests? */
const maySend = async () => {
  if (isAdmin) return true
  const answer = await fetch('config')
  if (!answer.ok) return false
  const { cors, services } = await answer.json()
  const shown = service === null ? Object.values(services) : [services[service]]
  return shown.every((one) => {
    const { origins } = one?.cors ?? cors
    return origins.includes('*') || origins.includes(location.origin)
  })
}

/** The name of an operation is inside a button: a link there would be a second control. */
/** @param {{ React: any }} system */
const plainNames = ({ React }) => ({
  components: {
    /** @param {{ text: unknown }} shown */
    DeepLink: ({ text }) => React.createElement('span', null, text),
  },
})

const withoutAuthorization = () => ({
  wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null },
})

/**
 * Attributes for elements of Swagger UI: it skips levels of headings, and has parts without a name or outside landmarks.
 * @type {Record<string, (element: Element) => Record<string, string>>}
 */
const attributes = {
  '.opblock-tag': () => ({ 'aria-level': '2' }),
  h4: () => ({ 'aria-level': '3' }),
  h5: () => ({ 'aria-level': '4' }),
  '.information-container': () => ({ role: 'region', 'aria-label': 'Document' }),
  '.scheme-container': () => ({ role: 'region', 'aria-label': 'Server' }),
  '.filter-container': () => ({ role: 'search' }),
  '#servers': () => ({ 'aria-label': 'Server' }),
  '.operation-filter-input': () => ({ 'aria-label': 'Filter' }),
  'table[role=region]': ({ id }) => ({ 'aria-label': id.replaceAll('_', ' ') }),
  'pre.microlight': () => ({ tabindex: '0' }),
}

const complete = () => {
  for (const [selector, made] of Object.entries(attributes))
    for (const element of document.querySelectorAll(selector))
      for (const [name, value] of Object.entries(made(element))) element.setAttribute(name, value)
}

const start = async () => {
  const sends = await maySend()
  const sentence = document.querySelector('#sending')
  if (!sends && sentence instanceof HTMLElement) {
    sentence.textContent = `To send requests from this page, add ${location.origin} to cors.origins of the configuration.`
    sentence.hidden = false
  }
  new MutationObserver(complete).observe(document.body, { childList: true, subtree: true })
  const { SwaggerUIBundle } = /** @type {any} */ (globalThis)
  SwaggerUIBundle({
    url: isAdmin
      ? 'admin-openapi.json'
      : service === null
        ? 'openapi.json'
        : `openapi/${encodeURIComponent(service)}.json`,
    dom_id: '#swagger-ui',
    deepLinking: true,
    docExpansion: isAdmin ? 'list' : 'none',
    defaultModelsExpandDepth: -1,
    filter: true,
    supportedSubmitMethods: sends ? ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'] : [],
    // The usual one is a service on the Internet.
    validatorUrl: null,
    plugins: sends ? [plainNames] : [plainNames, withoutAuthorization],
  })
}

void start()
