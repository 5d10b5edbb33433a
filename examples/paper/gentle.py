"""A congestion control: NewReno (RFC 5681) that keeps `beta` of its window at a loss."""


class Gentle:
    def __init__(self, beta=0.5):
        self.beta = beta

    def on_ack(self, path, ack):
        if not ack.cwnd_limited:
            return
        left = path.slow_start(ack.packets) if path.in_slow_start else ack.packets
        if left:
            path.additive_increase(path.cwnd, left)

    def ssthresh(self, path):
        return max(int(path.cwnd * self.beta), 2)
