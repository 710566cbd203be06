// The views of the page: the fragment of its address names the one that is shown, and a URL to explain.

import { element } from './draw.js'

const first = 'overview'

/** @param {string} url */
const explain = (url) => {
  const form = /** @type {HTMLFormElement} */ (element('explain'))
  const field = /** @type {HTMLInputElement} */ (form.elements.namedItem('url'))
  field.value = url
  form.requestSubmit()
}

const show = () => {
  const [wanted = '', query = ''] = location.hash.slice(1).split('?')
  const links = [...element('views').querySelectorAll('a')]
  const view = links.some(({ hash }) => hash === `#${wanted}`) ? wanted : first
  for (const link of links) {
    if (link.hash === `#${view}`) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  const main = document.querySelector('main')
  if (main !== null) main.dataset['shown'] = view
  const url = new URLSearchParams(query).get('url')
  if (url !== null) explain(url)
}

/** @param {string} view */
export const showView = (view) => {
  location.hash = view
}

/** Shows the view of the address, now and whenever it changes. */
export const followAddress = () => {
  addEventListener('hashchange', show)
  show()
}
