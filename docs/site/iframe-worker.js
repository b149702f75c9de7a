// Pages that are opened as files may start no workers, and the search is one: here it runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      inside.postMessage = (data) =>
        setTimeout(() => {
          const message = new MessageEvent("message", { data })
          this.dispatchEvent(message)
          if (this.onmessage) this.onmessage(message)
        })
      this.frame = frame
      this.ready = new Promise((loaded) => {
        const script = inside.document.createElement("script")
        script.src = new URL(address, location.href).href
        script.onload = loaded
        inside.document.body.append(script)
      })
    }
    async postMessage(data) {
      await this.ready
      const inside = this.frame.contentWindow
      const message = new inside.MessageEvent("message", { data })
      inside.dispatchEvent(message)
    }
    terminate() {
      this.frame.remove()
    }
  }
}
